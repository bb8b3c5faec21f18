
import json, os, sys, time
print(json.dumps({"text": ""}), flush=True)
for line in sys.stdin:
    text = json.loads(line)
    if text == "abort":
        os.abort()
    if text == "hang":
        time.sleep(600)
    if text == "endless":
        while True:
            print("x" * (1 << 20), end="", flush=True)
    print(json.dumps({"text": text.upper()} if text != "lie" else [text]), flush=True)
