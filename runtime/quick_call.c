/* A call that starts what is ready: from the arguments to the key, from it to the launch, from there to the driver. */
#include "quick_launch.h"

#include <string.h>

enum { CUDA = 2 };                 /* DLPack's number for this kind of device */
enum { STREAM = 32, CONFIG = 56 }; /* of a CUlaunchConfig, in bytes: where it has the stream, the whole */

/* What a ready launch begins with; ready.py puts it together. */
enum { IMAGE, STREAMS, DEVICE, CHECK, COMPILED };

/* The beginning of IMAGE, bytes. Then come the parameters' addresses, and for each that changes a `struct place`. */
struct image {
    /* cuLaunchKernelEx */
    int (*start)(const void *config, void *function, void **parameters, void **extra);
    void *function;
    /* Torch's, of DLPack's exchange; NULL where the current stream is another library's. */
    int (*current_stream)(int device_type, int device, void **stream);
    int32_t device;
    uint32_t count, changing, unused; /* parameters, and how many of them change */
    uint64_t config[CONFIG / 8];
};
struct place {
    uint16_t parameter, code; /* its number, and how it is written: 'Q' an address, 'f' and 'd' floating point */
};

/* A call. Its objects are borrowed from the caller, who keeps them until it returns, but for the key's parts. */
struct call {
    PyObject *values[MOST]; /* by parameter */
    PyObject *options[MOST], *chosen[MOST], *stream;
    PyObject *parts[MOST_PARTS]; /* of the key, owned */
    PyObject *numbers[MOST];   /* what changes, in the order of the parameters: a number, or NULL for an address */
    uint64_t addresses[MOST];
    int option_count, part_count, changing;
};

/* Functions return 0 or NULL for "not this way", with or without an error set. */

/* Adds an object, whose reference it takes, to the key. */
static int add(struct call *call, PyObject *part)
{
    if (part == NULL)
        return 0;
    call->parts[call->part_count++] = part;
    return 1;
}

static int add_borrowed(struct call *call, PyObject *part)
{
    Py_XINCREF(part);
    return add(call, part);
}

static int add_address(struct call *call, uint64_t address, int counts)
{
    call->numbers[call->changing] = NULL;
    call->addresses[call->changing++] = address;
    return !counts || add_borrowed(call, address % 16 == 0 ? Py_True : Py_False);
}

uint64_t quick_address(const struct dl_tensor *tensor)
{
    return (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
}

uint64_t quick_facts(const struct dl_tensor *tensor)
{
    uint64_t type = tensor->code | tensor->bits << 8 | (uint64_t)tensor->lanes << 16;
    return type | (uint64_t)(uint8_t)tensor->device_type << 32 | (uint64_t)tensor->device << 40;
}

static int add_tensor(struct call *call, struct launch *self, PyObject *tensor, int counts)
{
    struct dl_tensor read;
    if (((dl_reader)(uintptr_t)self->reader)(tensor, &read) != 0)
        return 0;
    uint64_t value = quick_facts(&read);
    if (self->last_facts == NULL || self->last_facts_value != value) {
        Py_XDECREF(self->last_facts);
        self->last_facts = PyLong_FromUnsignedLongLong(value);
        self->last_facts_value = value;
    }
    return add_borrowed(call, self->last_facts) && add_address(call, quick_address(&read), counts);
}

/* Any other array. */
static int add_array(struct call *call, struct launch *self, PyObject *array, int counts)
{
    PyObject *found = PyObject_CallFunctionObjArgs(self->look, array, NULL);
    uint64_t address = found == NULL ? 0 : PyLong_AsUnsignedLongLong(PyTuple_GetItem(found, 0));
    int added = found != NULL && !PyErr_Occurred() && add_borrowed(call, PyTuple_GetItem(found, 1)) &&
                add_address(call, address, counts);
    Py_XDECREF(found);
    return added;
}

static int add_argument(struct call *call, struct launch *self, char kind, PyObject *value)
{
    switch (kind) {
    case 'n': /* None: its type says all */
        return 1;
    case 'k': /* the value is in the key */
        return add_borrowed(call, value);
    case 'z': /* so is this floating-point number; 0.0 is equal to -0.0, so that zeros are there as text */
        return PyFloat_AsDouble(value) == 0.0 ? add(call, PyObject_Str(value)) : add_borrowed(call, value);
    case 'v': /* a number that changes */
        call->numbers[call->changing++] = value;
        return 1;
    case 'T': /* an array that `reader` reads; in capitals if it counts whether 16 divides the address */
    case 't':
        return add_tensor(call, self, value, kind == 'T');
    default: /* 'A' or 'a' */
        return add_array(call, self, value, kind == 'A');
    }
}

/* Finds the value of every parameter, the options and the stream. */
static int bind(struct call *call, struct launch *self, PyObject *const *args, Py_ssize_t given, PyObject *keywords)
{
    Py_ssize_t count = self->count, named = keywords == NULL ? 0 : PyTuple_Size(keywords);
    if (given > count || named > MOST || self->sizes == Py_None)
        return 0;
    for (Py_ssize_t i = 0; i < count; ++i)
        call->values[i] = i < given ? args[i] : self->defaults[i];
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyObject *name = PyTuple_GetItem(keywords, i), *value = args[given + i];
        PyObject *number = PyDict_GetItemWithError(self->numbers, name);
        Py_ssize_t at = number == NULL ? -2 : PyLong_AsSsize_t(number);
        if (at >= given)
            call->values[at] = value;
        else if (at >= 0)
            return 0; /* given twice */
        else if (at == -1)
            call->stream = value;
        else {
            call->options[call->option_count] = name;
            call->chosen[call->option_count++] = value;
        }
    }
    for (Py_ssize_t i = 0; i < count; ++i)
        if ((PyObject *)Py_TYPE(call->values[i]) != self->types[i])
            return 0;
    return 1;
}

/* Adds what decides around the call, if anything does: variables of the environment, the options' names and values. */
static void add_world(struct call *call, struct launch *self)
{
    int is_plain = call->option_count == 0;
    for (int i = 0; is_plain && i < self->variable_count; ++i)
        is_plain = PyDict_GetItemWithError(self->environment, self->variables[i]) == NULL;
    for (int i = 0; !is_plain && i < self->variable_count; ++i) {
        PyObject *value = PyDict_GetItemWithError(self->environment, self->variables[i]);
        add_borrowed(call, value == NULL ? Py_None : value);
    }
    for (int i = 0; i < call->option_count; ++i)
        add_borrowed(call, call->options[i]);
    for (int i = 0; i < call->option_count; ++i)
        add_borrowed(call, call->chosen[i]);
}

/* Adds the grid, as a tuple; `given` is what a function gave, a new reference. */
static int add_grid(struct call *call, struct launch *self, PyObject *grid, PyObject **given)
{
    if (PyTuple_CheckExact(grid))
        return add_borrowed(call, grid);
    PyObject *bound = PyDict_New(), *sizes = NULL;
    for (int i = 0; bound != NULL && i < self->count; ++i)
        PyDict_SetItem(bound, PyTuple_GetItem(self->names, i), call->values[i]);
    if (!PyErr_Occurred())
        sizes = PyObject_CallFunctionObjArgs(self->sizes, grid, bound, NULL);
    Py_XDECREF(bound);
    if (PyCallable_Check(grid)) {
        Py_XINCREF(sizes);
        *given = sizes;
    }
    return add(call, sizes);
}

/* A tuple of objects, whose references it takes; NULL with a NULL among them. */
static PyObject *tuple_of(PyObject **parts, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count; ++i)
        if (tuple != NULL && parts[i] != NULL)
            PyTuple_SetItem(tuple, i, parts[i]);
        else {
            Py_CLEAR(tuple);
            Py_XDECREF(parts[i]);
        }
    return tuple;
}

/* Whether the call's key is the last one; -1 with an error. */
static int has_last_key(struct call *call, struct launch *self)
{
    PyObject *last = self->last;
    int same = last != NULL && self->last_count == call->part_count;
    Py_XINCREF(last); /* comparing may run Python, and other threads these functions */
    for (int i = 0; same == 1 && i < call->part_count; ++i)
        if (self->last_parts[i] != call->parts[i]) {
            same = PyObject_RichCompareBool(self->last_parts[i], call->parts[i], Py_EQ);
            if (same == 1 && self->last != last)
                same = 0;
        }
    Py_XDECREF(last);
    return same;
}

/* What there is under the call's key, whose parts it takes: a new reference. */
static PyObject *look_up(struct call *call, struct launch *self)
{
    int count = call->part_count, same = has_last_key(call, self);
    PyObject *found = NULL, *key, *before;
    if (same == 1) {
        found = PyTuple_GetItem(self->last, 1);
        Py_INCREF(found);
        for (int i = 0; i < count; ++i)
            Py_DECREF(call->parts[i]);
        return found;
    }
    if ((key = tuple_of(call->parts, count)) == NULL)
        return NULL;
    found = same == 0 ? PyDict_GetItemWithError(self->ready, key) : NULL;
    Py_XINCREF(found);
    if (found != NULL && found != Py_None) {
        PyObject *made = PyTuple_Pack(2, key, found); /* which may collect garbage, and so run Python */
        before = self->last;
        self->last = made;
        self->last_count = self->last == NULL ? -1 : count;
        memcpy(self->last_parts, call->parts, count * sizeof(PyObject *));
        Py_XDECREF(before);
    }
    Py_DECREF(key);
    return found;
}

/* The ready launch for a call, a new reference. */
static PyObject *find(struct call *call, struct launch *self, PyObject *grid, PyObject **sizes)
{
    int is_known = add_grid(call, self, grid, sizes);
    for (int i = 0; is_known && i < self->count; ++i)
        is_known = add_argument(call, self, self->kinds[i], call->values[i]);
    if (!is_known) {
        while (call->part_count > 0)
            Py_DECREF(call->parts[--call->part_count]);
        return NULL;
    }
    add_world(call, self);
    PyObject *found = look_up(call, self), *inner = NULL, *key, *addresses[MOST];
    if (found == NULL || !PyDict_CheckExact(found))
        return found;
    int count = 0; /* with tensor maps, launches are ready for certain addresses only */
    for (int i = 0; i < call->changing; ++i)
        if (call->numbers[i] == NULL)
            addresses[count++] = PyLong_FromUnsignedLongLong(call->addresses[i]);
    if ((key = tuple_of(addresses, count)) != NULL)
        inner = PyDict_GetItemWithError(found, key);
    Py_XINCREF(inner);
    Py_XDECREF(key);
    Py_DECREF(found);
    return inner;
}

/* The stream of a launch: the caller's or the current one. */
static int find_stream(struct call *call, PyObject *ready, const struct image *image, uint64_t *stream)
{
    PyObject *found = call->stream;
    void *current = NULL;
    if (found == Py_None && image->current_stream != NULL) {
        int status = image->current_stream(CUDA, image->device, &current);
        *stream = (uint64_t)(uintptr_t)current;
        return status == 0;
    }
    if (found == Py_None)
        found = PyObject_CallFunctionObjArgs(PyTuple_GetItem(ready, STREAMS), PyTuple_GetItem(ready, DEVICE), NULL);
    else
        Py_INCREF(found);
    int is_found = found != NULL && PyLong_CheckExact(found);
    if (is_found)
        *stream = PyLong_AsUnsignedLongLong(found);
    Py_XDECREF(found);
    return is_found;
}

/* Fills in what changes and calls the driver; whether that has started the kernel. */
static int start(struct call *call, PyObject *ready)
{
    const struct image *image = (const struct image *)PyBytes_AsString(PyTuple_GetItem(ready, IMAGE));
    uint64_t config[CONFIG / 8], slots[MOST]; /* on the stack: several threads may be here at once */
    void *parameters[MOST];
    int status;
    if (image->count > MOST || image->changing != (uint32_t)call->changing)
        return 0;
    const struct place *places = (const struct place *)((void *const *)(image + 1) + image->count);
    memcpy(config, image->config, CONFIG);
    memcpy(parameters, image + 1, image->count * sizeof(void *));
    for (int i = 0; i < call->changing; ++i) {
        double value = call->numbers[i] == NULL ? 0 : PyFloat_AsDouble(call->numbers[i]);
        float narrow = (float)value; /* infinite beyond the largest, as on the long way */
        if (call->numbers[i] == NULL)
            slots[i] = call->addresses[i];
        else if (places[i].code == 'd')
            memcpy(&slots[i], &value, sizeof value);
        else
            memcpy(&slots[i], &narrow, sizeof narrow);
        parameters[places[i].parameter] = &slots[i];
    }
    if (!find_stream(call, ready, image, &config[STREAM / 8]) || PyErr_Occurred())
        return 0;
    Py_BEGIN_ALLOW_THREADS /* the driver waits while its queue is full */
    status = image->start(config, image->function, parameters, NULL);
    Py_END_ALLOW_THREADS
    return status == 0;
}

/* Launches what is ready; the compiled kernel, a new reference. */
PyObject *quick_attempt(struct launch *self, PyObject *grid, PyObject *const *args, Py_ssize_t given,
                        PyObject *keywords, PyObject **sizes)
{
    struct call call;
    PyObject *ready, *compiled = NULL;
    call.stream = Py_None;
    call.option_count = call.part_count = call.changing = 0;
    if (!bind(&call, self, args, given, keywords) || (ready = find(&call, self, grid, sizes)) == NULL)
        return NULL;
    if (ready != Py_None && PyList_Size(self->enter) == 0 && PyList_Size(self->exit) == 0) {
        PyObject *check = PyTuple_GetItem(ready, CHECK);
        PyObject *checked = check == Py_None ? NULL : PyObject_CallFunctionObjArgs(check, NULL);
        if ((check == Py_None || checked != NULL) && start(&call, ready))
            compiled = PyTuple_GetItem(ready, COMPILED);
        Py_XDECREF(checked);
    }
    Py_XINCREF(compiled);
    Py_DECREF(ready);
    return compiled;
}

