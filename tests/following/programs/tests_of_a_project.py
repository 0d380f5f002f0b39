"""unittest and doctest, in the program's own runner."""

import doctest
import io
import unittest

from tiny import train


def three():
    """
    >>> three()
    3
    >>> print("out", [][0])
    Traceback (most recent call last):
    IndexError: list index out of range
    """
    return 3


class Tests(unittest.TestCase):
    def test_loss(self):
        with self.assertWarns(UserWarning):
            __import__("warnings").warn("x", stacklevel=1)
        self.assertLess(train(), 1)

    def test_fails(self):
        self.assertEqual(train(steps=500), 0)


result = unittest.TextTestRunner(stream=io.StringIO()).run(
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests)
)
print(result, result.failures[0][1], doctest.testmod())
