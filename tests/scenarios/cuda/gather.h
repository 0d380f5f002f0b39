// What the lanes of a warp make of their values, when all of a mask have come.
#pragma once

enum Gather { MEET, EXCHANGE, BALLOT, ADD, AND, OR, XOR, LEAST, MOST, LEAST_SIGNED, MOST_SIGNED, MATCH };
