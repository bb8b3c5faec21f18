#include <Python.h>
#include "value.h"
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", 0, -1, 0};
PyMODINIT_FUNC PyInit_native(void) {
  PyObject *it = PyModule_Create(&module);
  PyModule_AddIntConstant(it, "VALUE", VALUE);
  return it;
}
