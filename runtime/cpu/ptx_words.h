// What the helpers do that the generated text writes in PTX, for the host compiler. The build takes such a helper's
// definition out of the text; the function of the same name and parameters here takes its place.
#pragma once
#include "floats.h"

inline float divide(float x, float y) { return x / y; }
inline float square_root(float x) { return sqrtf(x); }
