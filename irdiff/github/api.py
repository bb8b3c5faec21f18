"""Sends requests to GitHub through PyGithub, and waits when GitHub asks for it.

Waiting follows "Best practices for using the REST API" (docs.github.com): `retry-after` first, then
`x-ratelimit-reset` if nothing remains, then a minute, growing. The token is in no message and no log.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import github
import requests
from github.GithubException import GithubException

from irdiff import config as configuration
from irdiff.errors import ExitCode, IrdiffError, UsageError
from irdiff.report.escape import clean

MAX_ATTEMPTS = 5
MAX_WAIT_S = 900.0
_SECONDARY_LIMIT_S = 60.0
_SERVER_ERROR_S = 2.0
_TIMEOUT_S = 30
_PAGE = 100
_MAX_PAGES = 20
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


class GithubError(IrdiffError):
    """GitHub refuses a request: no permission, no such pull request, not accepted."""


class GithubUnreachableError(GithubError):
    """No answer, or only server errors, after every attempt."""

    exit_code = ExitCode.NOT_COMPARED


class NotSentError(GithubUnreachableError):
    """A request that must not be sent twice got no clear answer: it may have been carried out."""


class TooLongError(GithubError):
    """A text is longer than GitHub accepts."""


class ForbiddenError(GithubError): ...


class Client:
    """One repository on github.com, or on a GitHub Enterprise server."""

    def __init__(
        self,
        token: str,
        repository: str,
        *,
        api_url: str = "https://api.github.com",
        write_pause_s: float = 1.0,
    ) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise UsageError(
                f"{repository[:100]!a} is not the name of a repository",
                hint="write it as OWNER/NAME: --repo triton-lang/triton",
            )
        self.repository = repository
        self.owner, self.name = repository.split("/")
        self.host = _checked_host(api_url)
        self._token = token
        self._api_url = api_url.rstrip("/")
        self.sleep, self.now = time.sleep, time.time
        self._github = github.Github(
            auth=github.Auth.Token(token),
            base_url=api_url.rstrip("/"),
            timeout=_TIMEOUT_S,
            user_agent="irdiff",
            retry=None,  # PyGithub sleeps by itself; here every wait is counted and bounded
            seconds_between_requests=None,
            seconds_between_writes=write_pause_s or None,  # to stay clear of secondary limits
        )

    def rest(
        self,
        verb: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        to: str,
        parameters: Mapping[str, Any] | None = None,
        repeatable: bool = True,
    ) -> Any:
        """Sends a request below `/repos/OWNER/NAME`. `to` says what for, in an error. If not `repeatable`, it
        is sent once, and raises NotSentError without a clear answer.
        """
        url = f"/repos/{self.repository}{path}"

        def send() -> Any:
            return self._github.requester.requestJsonAndCheck(
                verb, url, parameters=dict(parameters or {}), input=dict(body) if body is not None else None
            )[1]

        return self._patiently(send, to, repeatable)

    def listed(
        self, path: str, parameters: Mapping[str, Any], *, to: str, within: str | None = None
    ) -> Iterator[Any]:
        """Yields all pages; `within` names the list in an answer that is an object."""
        for page in range(1, _MAX_PAGES + 1):
            query = {**parameters, "per_page": _PAGE, "page": page}
            answer = self.rest("GET", path, to=to, parameters=query)
            entries = answer[within] if within else answer
            yield from entries
            if len(entries) < _PAGE:
                return

    def graphql(self, query: str, variables: Mapping[str, Any], *, to: str) -> Any:
        def send() -> Any:
            return self._github.requester.graphql_query(query, dict(variables))[1]["data"]

        return self._patiently(send, to, True)

    def download(self, path: str, place: Path, *, limit_bytes: int, to: str) -> None:
        """Follows a redirect, such as an artifact's. The token goes to GitHub alone. Raises GithubError for
        more than `limit_bytes`.
        """
        address = f"{self._api_url}/repos/{self.repository}{path}"

        def ask() -> str:
            answer = requests.get(
                address,
                headers={"Authorization": f"token {self._token}", "User-Agent": "irdiff"},
                allow_redirects=False,
                timeout=_TIMEOUT_S,
            )
            if answer.status_code != 302:
                shown = answer.json() if "json" in answer.headers.get("content-type", "") else {}
                raise GithubException(answer.status_code, shown, dict(answer.headers))
            return str(answer.headers["location"])

        location = self._patiently(ask, to, True)
        _checked_host(location, queried=True)
        self._patiently(lambda: _fetch(location, place, limit_bytes, to), to, True)

    def _patiently(self, send: Callable[[], Any], to: str, repeatable: bool) -> Any:
        waited_s = 0.0
        for attempt in range(MAX_ATTEMPTS):
            try:
                return send()
            except GithubException as error:
                delay_s = self._delay(error, attempt)
                if delay_s is None:
                    self._raise_refused(error, to)
                limited = error.status < 500
                reason = f"status {error.status}: {self._shown(error)}"
            except (OSError, AssertionError) as error:
                # what `requests` raises is an OSError; PyGithub asserts that redirects stay on its host
                delay_s, limited = _SERVER_ERROR_S * 2**attempt, False
                reason = f"{type(error).__name__}: {self._without_token(str(error))}"
            if not repeatable and not limited:
                raise NotSentError(f"no clear answer from {self.host} to {to}: {reason}")
            waited_s += delay_s
            if attempt == MAX_ATTEMPTS - 1 or waited_s > MAX_WAIT_S:
                break
            self.sleep(delay_s)
        raise GithubUnreachableError(
            f"could not {to}: {self.host} gave no answer after {attempt + 1} attempts: {reason}",
            hint="try again later; nothing else was sent",
        )

    def _delay(self, error: GithubException, attempt: int) -> float | None:
        """Returns seconds; None if another try never helps."""
        grown: float = 2.0**attempt
        if error.status >= 500:
            return _SERVER_ERROR_S * grown
        limited = error.status == 429 or (error.status == 400 and "RATE_LIMITED" in _graphql_types(error))
        if not limited and error.status != 403:
            return None
        # 403 stands for a limit and for a missing permission alike
        headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
        message = self._shown(error).lower()
        if headers.get("retry-after", "").isdigit():
            return float(headers["retry-after"])
        if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
            return max(1.0, float(headers["x-ratelimit-reset"]) - self.now())
        limited = limited or "rate limit" in message or "abuse detection" in message
        return _SECONDARY_LIMIT_S * grown if limited else None

    def _raise_refused(self, error: GithubException, to: str) -> NoReturn:
        message = self._shown(error)
        forbidden = error.status == 403 or bool(_graphql_types(error) & {"FORBIDDEN", "INSUFFICIENT_SCOPES"})
        if error.status == 401:
            raise GithubError(
                f"{self.host} does not accept the token", hint="set GITHUB_TOKEN to one that is valid"
            ) from None
        if forbidden:
            raise ForbiddenError(
                f"the token may not {to} in {self.repository}: {message}",
                hint="give the job the permissions that reports/github/README.md lists",
            ) from None
        if error.status == 404:
            raise GithubError(
                f"could not {to}: {self.repository} has no such thing, or the token cannot see it",
                hint="check --repo and --pr, and the token's access to the repository",
            ) from None
        if error.status == 422 and "too long" in f"{message} {error.data}".lower():
            raise TooLongError(f"could not {to}: {message}") from None
        raise GithubError(f"could not {to}: status {error.status}: {message}") from None

    def _shown(self, error: GithubException) -> str:
        first = error.data.get("message") if isinstance(error.data, dict) else error.message
        parts = [first, *(each.get("message") for each in _errors(error))]
        return self._without_token("; ".join(str(part) for part in parts if part) or "no message")

    def _without_token(self, text: str) -> str:
        return clean(text.replace(self._token, "***") if self._token else text, limit=300)


def of_environment(repository: str | None = None, api_url: str | None = None) -> Client:
    """Uses the token of the environment, and by default the job's repository. Raises UsageError."""
    config = configuration.load()
    repository = repository or config.github_repository
    if not config.github_token or not repository:
        hint = "set GITHUB_TOKEN, and GITHUB_REPOSITORY=OWNER/NAME or --repo"
        raise UsageError("no token, or no repository", hint=hint)
    return Client(config.github_token, repository, api_url=api_url or config.github_api_url)


def _errors(error: GithubException) -> list[dict[str, Any]]:
    errors = error.data.get("errors") if isinstance(error.data, dict) else None
    return [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []


def _graphql_types(error: GithubException) -> set[str]:
    return {str(each.get("type")) for each in _errors(error)}


def _fetch(location: str, place: Path, limit_bytes: int, to: str) -> None:
    with requests.get(location, stream=True, timeout=_TIMEOUT_S, allow_redirects=False) as answer:
        if answer.status_code != 200:
            raise GithubException(answer.status_code, {}, dict(answer.headers))
        left = limit_bytes
        with place.open("wb") as file:
            for chunk in answer.iter_content(1 << 20):
                left -= len(chunk)
                if left < 0:
                    raise GithubError(f"could not {to}: it has more than {limit_bytes} bytes")
                file.write(chunk)


def _checked_host(api_url: str, *, queried: bool = False) -> str:
    """Accepts only TLS, or this very machine. An API's address has no query."""
    parts = urlsplit(api_url)
    if not parts.hostname or parts.username or parts.fragment or (parts.query and not queried):
        raise UsageError(
            f"{clean(api_url, limit=100)} is not the address of a GitHub API",
            hint="write it as https://HOST/api/v3, with --api-url or GITHUB_API_URL",
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname)):
        raise UsageError(
            f"irdiff sends the token over https only, not to {clean(api_url, limit=100)}",
            hint="give an address that begins with https://",
        )
    return parts.hostname


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
