#!/bin/sh
kill -TSTP $$
