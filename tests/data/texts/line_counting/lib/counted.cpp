#include "twice.h"
// a comment holds no code
extern "C" __attribute__((visibility("default"))) int f(int x) {
  if (x > 3)
    return twice(x);
  return x;
}
