# Installs irdiff from the commit that this file is of, and what it needs by hash: nothing by name alone.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
wanted="$here/requirements${EXTRAS:+-$EXTRAS}.txt"
# uv first, which installs the rest in a second.
awk '/^[^ ]/ { keep = /^uv==/ } keep' "$wanted" > "$RUNNER_TEMP/uv.txt"
python3 -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$RUNNER_TEMP/uv.txt"
uv=(python3 -m uv pip install --quiet --python "$(command -v python3)")
"${uv[@]}" --require-hashes --only-binary :all: --requirement "$wanted"
# With a release on the package index this line becomes its name, version and hash in requirements.txt.
"${uv[@]}" --no-deps --no-index --no-build-isolation "$here/../../.."
irdiff --version
