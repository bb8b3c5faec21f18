
import sys, time
from pathlib import Path
from irdiff.history import database
from tests.unit.history import histories
path, name, pause_s = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
for number in range(int(sys.argv[4])):
    with database.writing(path) as history:
        history.put("facts", [(name, f"case{i}", f"fact{number}", 1.0, "measured") for i in range(200)])
        print("inside", flush=True)
        time.sleep(pause_s)
