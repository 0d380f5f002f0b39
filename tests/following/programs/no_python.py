"""No Python at all."""
# run: sh -c 'cat; echo error >&2; printf "no newline"; kill -TERM $$'

print("not run")
