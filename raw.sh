#!/bin/sh
stty raw -echo
