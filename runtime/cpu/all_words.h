// What the host compiler reads before a kernel's text; `build.py` compiles it beforehand.
#pragma once
#include "ptx_words.h"
#include "kernel_words.h"
