"""python -m pdb, which is told to go on, and where a program has stopped."""
# run: sh -c 'printf "b 6\nc\nw\nc\nq\n" | python -m pdb program.py'
from tiny import train

print("begins")
loss = train(steps=700)
print("ended", loss)
