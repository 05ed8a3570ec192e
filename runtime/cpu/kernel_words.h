// A word of the kernel's text that means more than it says: for that text alone, not for these headers.
#pragma once

#define static_cast tilewright::converted   // see math_words.h
