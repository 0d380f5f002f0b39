"""A program in an archive, and one run by runpy."""
# run: sh -c 'python make.py && python app.pyz && python app'

print("not run")
# --- make.py
import os
import zipapp

zipapp.create_archive("app", "made.pyz")
os.rename("made.pyz", "app.pyz")
os.environ.clear()
# --- app/__main__.py
import os
import runpy
import sys

sys.path.append(os.getcwd())
import tiny

print(__name__, __file__.rpartition("/")[2], tiny.train(steps=500))
print(sorted(runpy.run_path("inner.py", run_name="inner")))
if sys.argv[0].endswith("pyz"):
    os.remove("app.pyz")
# --- inner.py
import tiny

loss = tiny.train(steps=500)
