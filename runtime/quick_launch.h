/* What the two files of this part share; see quick_launch.c. */
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef PyObject *(*vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);

/* Parameters and options; calls with more are left to the written function. Variables of the environment. */
enum { MOST = 64, MOST_VARIABLES = 8 };

/* Parts of a key: the grid, two of each parameter, the variables, names and values of the options. */
enum { MOST_PARTS = 1 + 2 * MOST + MOST_VARIABLES + 2 * MOST };

/* The beginning of DLPack's DLTensor, and the function that fills one in for an object, without counting references. */
struct dl_tensor {
    char *data;
    int32_t device_type, device, rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
typedef int (*dl_reader)(void *object, struct dl_tensor *tensor);

/* What fast_text.py makes, one for each written function. The objects belong to `state`. */
struct launch {
    PyObject_HEAD
    vectorcall call;
    PyTypeObject *held;    /* the type of `launch[grid]` */
    PyObject *state;       /* a tuple of what follows */
    PyObject *otherwise;   /* the written function */
    const char *kinds;     /* one per parameter: see `add_argument` */
    int count;             /* of the parameters; -1 for more than MOST */
    PyObject *types[MOST]; /* the types that the arguments must have */
    PyObject *names;       /* the parameters' names */
    PyObject *numbers;     /* the number of each parameter by its name; -1 for the stream */
    PyObject *defaults[MOST]; /* the parameters' defaults; without one, an object of a type that is not among `types` */
    PyObject *environment; /* the dictionary behind os.environ */
    PyObject *variables[MOST_VARIABLES]; /* the keys in it that count */
    int variable_count;
    PyObject *enter, *exit;    /* lists of hooks */
    PyObject *ready;       /* launches by key, or dictionaries from addresses to launches; None for those seen once */
    PyObject *sizes;       /* a function from a grid that is no tuple, and a dictionary of the arguments, to the tuple; None
                              for a function that no launch can be ready for */
    PyObject *look;        /* a function from an array to its address and all else that counts */
    unsigned long long reader; /* torch's `dl_reader`; 0 if it has none */
    /* Not in `state`, and NULL at first: the key that was found last with what was found, for most launches are like the
       one before, and the number for the tensor that was read last, for most tensors of a kernel are alike. */
    PyObject *last, *last_parts[MOST_PARTS], *last_facts; /* the parts of the key as `last` has them */
    int last_count;
    uint64_t last_facts_value;
};

/* Starts the launch that is ready for these arguments: the compiled kernel, a new reference; NULL, with or without an
   error set, where the written function is to do it. The values of `keywords`, a tuple of names or NULL, stand behind
   the `given` ones. A grid that is a function is called, and what it gave is in `sizes`, a new reference; otherwise NULL. */
PyObject *quick_attempt(struct launch *self, PyObject *grid, PyObject *const *args, Py_ssize_t given,
                        PyObject *keywords, PyObject **sizes);

/* A tensor's address; and all else that counts of it, its element type and device. */
uint64_t quick_address(const struct dl_tensor *tensor);
uint64_t quick_facts(const struct dl_tensor *tensor);
