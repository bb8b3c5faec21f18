extern "C" __attribute__((visibility("default"))) int g(int x) { return x; }
