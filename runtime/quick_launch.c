/* The quick way to the driver without running Python: what the function does that fast_text.py writes, up to the launch.

   A `Launch` is called as `launch(grid, *arguments, **options)`, or `launch[grid](*arguments, **options)`. It computes
   the key of the call, takes the launch that is ready under it (ready.py), fills in what changes, and calls the driver
   (quick_call.c). Everything else, and every error, it leaves to the written function, which it calls with the same
   arguments.

   Only the limited API of Python 3.10 is used, so that one binary serves all later versions, and nothing of CUDA: the
   driver's function comes as an address in each ready launch. No object is kept outside of a `Launch`, so that
   interpreters share none. */
#include "quick_launch.h"

#include <stddef.h>
#include <structmember.h>

/* Calls without a tuple of arguments: in the limited API from 3.12 on, but the same since 3.8. */
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
#define COUNT_OF(flagged) ((Py_ssize_t)((flagged) & ~((size_t)1 << (8 * sizeof(size_t) - 1))))
#define FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL)

/* `launch[grid]`. */
struct held {
    PyObject_HEAD
    vectorcall call;
    struct launch *launch;
    PyObject *grid;
};

/* A tuple of an object, if there is one, and others. */
static PyObject *tuple_of(PyObject *first, PyObject *const *others, Py_ssize_t count)
{
    int shift = first != NULL;
    PyObject *tuple = PyTuple_New(count + shift);
    for (Py_ssize_t i = 0; tuple != NULL && i < count + shift; ++i) {
        PyObject *item = i < shift ? first : others[i - shift];
        Py_INCREF(item);
        PyTuple_SetItem(tuple, i, item);
    }
    return tuple;
}

/* Whether the error that is set is the caller's: what ends programs, as KeyboardInterrupt, or what the grid's own function
   raised, which is called once. All others are left to the written function, which words them. */
static int is_final(PyObject *grid, PyObject *sizes)
{
    if (!PyErr_Occurred())
        return 0;
    return !PyErr_ExceptionMatches(PyExc_Exception) || (sizes == NULL && grid != NULL && PyCallable_Check(grid));
}

/* Calls the launch; `grid` is NULL where no argument is given. */
static PyObject *call(struct launch *self, PyObject *grid, PyObject *const *args, Py_ssize_t given, PyObject *keywords)
{
    PyObject *sizes = NULL, *result = grid == NULL ? NULL : quick_attempt(self, grid, args, given, keywords, &sizes);
    if (result != NULL || is_final(grid, sizes)) {
        Py_XDECREF(sizes);
        return result;
    }
    PyErr_Clear();
    PyObject *positional = tuple_of(sizes == NULL ? grid : sizes, args, given);
    PyObject *named = keywords == NULL ? NULL : PyDict_New();
    Py_XDECREF(sizes);
    for (Py_ssize_t i = 0; named != NULL && i < PyTuple_Size(keywords); ++i)
        PyDict_SetItem(named, PyTuple_GetItem(keywords, i), args[given + i]);
    if (!PyErr_Occurred())
        result = PyObject_Call(self->otherwise, positional, named);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return result;
}

static PyObject *launch_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *keywords)
{
    Py_ssize_t given = COUNT_OF(flagged);
    PyObject *grid = given > 0 ? args[0] : NULL;
    return call((struct launch *)self, grid, args + (grid != NULL), given - (grid != NULL), keywords);
}

static PyObject *held_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *keywords)
{
    return call(((struct held *)self)->launch, ((struct held *)self)->grid, args, COUNT_OF(flagged), keywords);
}

/* `launch.__call__(...)`, which comes with a tuple and a dictionary: few do it, so that the written function does. */
static PyObject *launch_call_method(PyObject *self, PyObject *args, PyObject *keywords)
{
    return PyObject_Call(((struct launch *)self)->otherwise, args, keywords);
}

static PyObject *held_call_method(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *grid = tuple_of(NULL, &((struct held *)self)->grid, 1);
    PyObject *whole = grid == NULL ? NULL : PySequence_Concat(grid, args), *result = NULL;
    if (whole != NULL)
        result = PyObject_Call(((struct held *)self)->launch->otherwise, whole, keywords);
    Py_XDECREF(grid);
    Py_XDECREF(whole);
    return result;
}

static PyObject *launch_subscript(PyObject *self, PyObject *grid)
{
    struct held *held = PyObject_GC_New(struct held, ((struct launch *)self)->held);
    if (held == NULL)
        return NULL;
    Py_INCREF(self);
    Py_INCREF(grid);
    held->call = held_call;
    held->launch = (struct launch *)self;
    held->grid = grid;
    PyObject_GC_Track(held);
    return (PyObject *)held;
}

/* What is in a tuple, borrowed, and how much that is; -1 for more than `most`. */
static void copy(PyObject *tuple, PyObject **items, int *count, int most)
{
    Py_ssize_t size = PyTuple_Size(tuple);
    *count = size <= most ? (int)size : -1;
    for (int i = 0; i < *count; ++i)
        items[i] = PyTuple_GetItem(tuple, i);
}

static PyObject *launch_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    struct launch *self = (struct launch *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL)
        return NULL;
    (void)keywords;
    PyObject *types, *defaults, *variables;
    self->call = launch_call;
    self->held = (PyTypeObject *)PyObject_GetAttrString(PyType_GetModule(type), "Held");
    self->state = args;
    Py_INCREF(args);
    if (self->held == NULL ||
        !PyArg_ParseTuple(args, "OyO!O!O!O!O!O!O!O!O!OOK", &self->otherwise, &self->kinds,
                          &PyTuple_Type, &types, &PyTuple_Type, &self->names,
                          &PyDict_Type, &self->numbers, &PyTuple_Type, &defaults,
                          &PyDict_Type, &self->environment, &PyTuple_Type, &variables,
                          &PyList_Type, &self->enter, &PyList_Type, &self->exit,
                          &PyDict_Type, &self->ready, &self->sizes, &self->look, &self->reader)) {
        Py_DECREF(self);
        return NULL;
    }
    copy(types, self->types, &self->count, MOST);
    copy(defaults, self->defaults, &self->count, MOST);
    copy(variables, self->variables, &self->variable_count, MOST_VARIABLES);
    if (self->variable_count < 0) /* nothing goes this way then */
        self->count = -1;
    return (PyObject *)self;
}

static int launch_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct launch *self = (struct launch *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->held);
    Py_VISIT(self->state);
    Py_VISIT(self->last);
    return 0;
}

static void launch_dealloc(PyObject *object)
{
    struct launch *self = (struct launch *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->held);
    Py_XDECREF(self->state);
    Py_XDECREF(self->last);
    Py_XDECREF(self->last_facts);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static int held_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((struct held *)object)->launch);
    Py_VISIT(((struct held *)object)->grid);
    return 0;
}

static void held_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_DECREF(((struct held *)object)->launch);
    Py_DECREF(((struct held *)object)->grid);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* read(tensor): its address and facts, for the written function. */
static PyObject *launch_read(PyObject *self, PyObject *tensor)
{
    struct dl_tensor read;
    if (((dl_reader)(uintptr_t)((struct launch *)self)->reader)(tensor, &read) != 0)
        return NULL;
    unsigned long long address = quick_address(&read), facts = quick_facts(&read);
    return Py_BuildValue("KK", address, facts);
}

static PyMethodDef LAUNCH_METHODS[] = {{"read", launch_read, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyMemberDef LAUNCH_MEMBERS[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct launch, call), READONLY, NULL},
    {"state", T_OBJECT_EX, offsetof(struct launch, state), READONLY, "What it was made of, the written function first."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot LAUNCH_SLOTS[] = {
    {Py_tp_new, launch_new},           {Py_tp_call, launch_call_method}, {Py_mp_subscript, launch_subscript},
    {Py_tp_traverse, launch_traverse}, {Py_tp_dealloc, launch_dealloc},  {Py_tp_members, LAUNCH_MEMBERS},
    {Py_tp_methods, LAUNCH_METHODS},   {0, NULL},
};
static PyType_Spec LAUNCH = {"tilewright.runtime.quick_launch.Launch", sizeof(struct launch), 0, FLAGS, LAUNCH_SLOTS};

static PyMemberDef HELD_MEMBERS[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct held, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot HELD_SLOTS[] = {
    {Py_tp_call, held_call_method}, {Py_tp_traverse, held_traverse}, {Py_tp_dealloc, held_dealloc},
    {Py_tp_members, HELD_MEMBERS},  {0, NULL},
};
static PyType_Spec HELD = {"tilewright.runtime.quick_launch.Held", sizeof(struct held), 0, FLAGS, HELD_SLOTS};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int added = type == NULL ? -1 : PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return added;
}

static int fill(PyObject *module)
{
    return add_type(module, "Held", &HELD) < 0 ? -1 : add_type(module, "Launch", &LAUNCH);
}

static PyModuleDef_Slot MODULE_SLOTS[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "quick_launch", NULL, 0, NULL, MODULE_SLOTS, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_quick_launch(void)
{
    return PyModuleDef_Init(&MODULE);
}
