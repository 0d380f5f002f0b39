"""python -W error."""
# run: python -W error program.py

import warnings

from tiny import model, train

print(warnings.filters[0][0], train())
net = model()
train(net, steps=500)
try:
    warnings.warn("mine", stacklevel=1)
except UserWarning as error:
    print(error)
