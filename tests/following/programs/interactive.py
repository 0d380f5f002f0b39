"""python -i, which reads what to do from stdin after the program."""
# run: sh -c 'printf "print(loss)\nimport torch\n1/0\nprint(torch.ones(2))\n" | python -i program.py'

from tiny import train

loss = train()
