

_compile = compile


def compile(src, target=None, options=None, **more):
    made = _compile(src, target=target, options=options, **more)
    stage = {11: "launcher_src", 12: "launch.json", ALONE: "launcher_src"}.get((options or {}).get("num_stages"))
    if stage:
        get_cache_manager("0" * 64).put("void f() { NUMBER; }", "kernel." + stage, binary=False)
    return made
