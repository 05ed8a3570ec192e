"""What `mutations` puts into kernels: values, operations on an expression, keywords, statements, names, comments."""

from __future__ import annotations

import re


def apart(text: str) -> tuple[str, ...]:
    """The entries of a text: two blanks or the end of a line stand between them."""
    return tuple(re.split(r"  |\n", text.strip()))


# fmt: off
NUMBERS = apart("""
0  -1  3  2**31  2**63  2**64  1e400  -0.0  0.5  1e-50  float('nan')  10**30
""")
OTHERS = apart("""
None  'text'  True  False  ...  (1, 2)  []  ()  b'x'  3j  tl.float16  tl  tl.sum  undefined  print  {}  f'{1}'
tl.constexpr(4)  int  object()  triton  tl.tensor
""")
TYPES = apart("""
int1  int8  uint8  int16  uint16  int32  uint32  int64  uint64  float16  bfloat16  float32  float64  float8e4nv
float8e5  float8e4b15  void  pi32_t  int4
""")
BINARY = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**", "@", "<", "<=", "==", "!=", ">", " and ", " or ",
          " is ", " is not ", " in ", " not in ", " if x else ")
WRAPPED = apart("""
(-{})  (not {})  (~{})  (+{})  ({},)  [{}]  {{{}}}  ({})[0]  ({})[None, :]  ({})[:, None]  ({})[0:4]  ({})[...]
({})[-1]  ({})[::2]  ({}).T  ({}).shape  ({}).dtype  ({}).foo  ({})()  (lambda: {})()  [{} for _ in range(2)]
tuple({} for _ in (1, 2))  (y := {})  ({} if 1 else None)  ({} if {} else {})  f'{{{}}}'  str({})  int({})
float({})  bool({})  len({})  abs({})  min({}, 0)  max({})  sum({})  range({})  list({})  print({})  type({})
repr({})  id({})  round({})  divmod({}, 2)  pow({}, 2)  isinstance({}, tl.tensor)  hasattr({}, 'shape')
getattr({}, 'dtype')  ({}).to(tl.float16)  ({}).to(tl.int8)  ({}).to(tl.int1)  ({}).to('float32')
({}).to(tl.float32, bitcast=True)  ({}).sum()  ({}).sum(axis=1)  ({}).item()  ({}).reshape(2, -1)  ({}).data_ptr()
tl.sum({})  tl.sum({}, 1)  tl.max({}, axis=0)  tl.argmax({}, 0)  tl.load({})  tl.trans({})
tl.zeros(({},), tl.float32)  tl.zeros({}, tl.float32)  tl.arange(0, {})  tl.full((4,), {}, tl.float32)  tl.exp({})
tl.where({}, 1, 0)  tl.broadcast_to({}, (4, 4))  tl.expand_dims({}, 0)  tl.reshape({}, (4, 4))  tl.dot({}, {})
tl.join({}, {})  tl.split({})  tl.cdiv({}, 2)  tl.program_id({})  tl.static_range({})  tl.atomic_add({}, 1)
tl.cast({}, tl.float32)  tl.ravel({})  tl.constexpr({})  tl.tensor({})  tl.to_tensor({})  tl.zeros_like({})
tl.maximum({}, 0.5)  tl.multiple_of({}, 8)  tl.reduce({}, 0, lambda a, b: a + b)  tl.libdevice.sin({})  tl.item({})
tl.softmax({})  tl.cat({}, {})  tl.interleave({}, {})  tl.permute({}, (1, 0))  tl.squeeze({}, 0)  tl.clamp({}, 0, 1)
tl.sort({})  tl.cumsum({})  ({} == {})  ({} is None)  ({} in (1, 2))  ({} + 1)  ({} * 0.5)  ({} / 0)  ({} // 0)
({} % 0)  ({} << 40)  ({} ** 2)  ({} @ {})  (1 < {} < 3)  ({} and {})  ({} or 1)  ({}, {})  (*({}),)  (await {})
(yield {})  __import__('os')  globals()  eval('{}')  ({}).__class__  ({}).numpy()  ({}).handle  tl.range({})
""")
KEYWORDS = apart("""
mask=None  mask=1  mask=undefined  other=0  other=0.0  other='a'  axis=0  axis=1  axis=2  axis=-1  axis=None
axis=0.5  axis='x'  axis=True  axis=(0, 1)  keep_dims=True  keep_dims=1  dtype=tl.int32  dtype='float32'
dtype=float  dtype=None  dtype=tl.bfloat16  cache_modifier='.cg'  cache_modifier='bad'  eviction_policy='evict_last'
eviction_policy=1  volatile=True  boundary_check=(0,)  boundary_check=0  padding_option='nan'  sem='acq'
sem='relaxed'  scope='gpu'  scope='cta_x'  out_dtype=tl.float16  out_dtype=tl.int32  input_precision='ieee'
input_precision='exact'  allow_tf32=False  acc=None  acc=1.0  num_stages=0  num_stages=-1  num_stages='2'
num_stages=100  unknown=1  return_indices=True  x=1  *(1, 2)  **{}  bitcast=True  max_num_imprecise_acc=-1
warp_specialize=True  flatten=True  loop_unroll_factor=0  disallow_acc_multi_buffer=3  tie_break_left=False
can_reorder=True  _semantic=None  _builder=1  order=(1, 0)
""")
FUNCTIONS = apart("""
load  store  zeros  full  arange  sum  max  min  dot  where  exp  trans  reshape  atomic_add  atomic_cas  program_id
cdiv  maximum  range  static_range  broadcast_to  view  join  split  cumsum  sort  rand  lod  Load  expp
make_block_ptr  advance  device_print  static_assert  assume  reduce  inline_asm_elementwise  associative_scan
histogram  gather  constexpr  float32  debug_barrier  cat  math  abs  sqrt  umulhi  fma  clamp  xor_sum  argmax
softmax  num_programs  dot_scaled  device_assert
""")
NAMES = apart("""
int  float  char  auto  template  namespace  this  new  delete  operator  threadIdx  blockIdx  gridDim  warp  lane
tid  half  min  max  M_PI  NULL  and_  bool  signed  long  short  asm  volatile  restrict  __shared__  __syncthreads
a_shared  x_shared  printf  uint4  float4  dim3  size_t  std  main  INFINITY  NAN  EOF  assert_  stored  VEC  ELEMS
NUM_THREADS  ROWS  COLS  v  e  c  r  row  col  program_x  load_vec  block_reduce  shared  barrier  stage  largest
fmaxf  expf  sum  abs  exp  sqrt  log  y0  j1  constexpr  static_cast  nullptr  unix  linux  __CUDACC__  _Bool  _x
__x  x__y  _X  µ  größe  名前  ﬁ  int8_t  wchar_t  export  typename  register  union  signal  errno  stdin  cuda
nv_bfloat16  __half  partial  tile  smem  mask  offset  index  tmp  acc  match  type  case  _  __  print  range
tuple  tl_  CUDA_ARCH  warpSize  clock  atomicAdd  Sum  Max  lo  hi  data  begin  end  kernel  launch_bounds  extern
mutable
""")
SUBSCRIPTS = apart("""
None  :  0  -1  None, None  :, :  :, None, :  0, :  ..., None  1:2  True  'a'  None, :, None  ::2  tl.arange(0, 4)  1.5
(None, slice(None))  :, None, None, None  2**70  :None, None
""")
ANNOTATIONS = apart("int  tl.constexpr  tl.const  float  str  3  tl.tensor  tl.int64")
DECORATORS = apart("staticmethod  undefined  triton.jit  classmethod  property  tl.constexpr_function  triton.heuristics({})")
# In front of a statement that is moved to the right.
HEADS = apart("""
if {0} > 3:  if True:  if False:  if {0}:  for z in range(2):  for z in tl.static_range(2):  while {0} < 2:
for {0} in range(2):  with {0}:  try:  def inner():  for z in range({0}):  if {0} is not None:  while True:
for z in tl.range(0, {0}, num_stages=3):  if tl.program_id(0) == 0:  if 1 < {0} < 5 and {0} != 3:
""")
# One a line; {0} is a name of the kernel.
STATEMENTS = tuple(line.replace("\\n", "\n") for line in r'''
return
return 1
return {0}
break
continue
yield
yield {0}
pass
raise ValueError('no')
assert {0}
assert {0} == 3, 'three'
del {0}
global {0}
nonlocal {0}
import os
from math import pi
{0} = None
{0} = 1.5
{0} = 3
{0} = ({0}, {0})
{0} += 1
{0} += 'a'
{0} = {0}.to(tl.float16)
{0} = tl.sum({0})
{0} = {0}[None, :]
{0} = tl.zeros((8,), tl.float32)
{0} = -{0}
{0}: int = 3
{0}: tl.constexpr = 4
{0}[0] = 1
{0}.x = 1
{0}, z = {0}
{0}, z = {0}, 2
({0}, (z, w)) = ({0}, (1, 2))
*z, w = 1, 2, {0}
z = w = {0}
(z := {0})
tl = 3
triton = None
float = 3
range = 4
int = tl.float32
z = lambda a: a
z = [{0}]
z[0] = {0}
z = {{}}
print({0})
print('a', {0}, sep='')
if {0}:\n    return
if {0} > 1:\n    z = 1\nelse:\n    z = 1.5\ntl.static_print(z)
if {0} is None:\n    {0} = 1
for {0} in range(3):\n    pass
for z in {0}:\n    pass
for z in range({0}):\n    {0} = z
for z in range(2):\n    {0} = {0} + 1.5
for z in range(2):\n    {0} = ({0},)
for z in range(2):\n    {0} += z\nelse:\n    pass
for z in range(2):\n    if z == 1:\n        break
for z in range(0, 8, 0):\n    pass
for z in range(2):\n    del z
for z in tl.range(2, num_stages={0}):\n    pass
for z in tl.static_range({0}):\n    pass
for a, z in enumerate((1, 2)):\n    pass
while {0}:\n    {0} = 0
while False:\n    pass
while {0} < 3:\n    {0} += 1
while {0} < 3:\n    {0} += 1\n    if {0} == 2: continue
try:\n    {0} = 1\nexcept Exception:\n    pass
with open('x') as f:\n    pass
def inner(a):\n    return a\n{0} = inner({0})
class A:\n    pass
async def inner():\n    pass
match {0}:\n    case 1:\n        pass\n    case _:\n        pass
@triton.jit\ndef inner(a):\n    return a
f'{{{0}}}'
{0}
...
1
not {0}
{0} == 1
tl.device_print('x', {0})
tl.device_print({0})
tl.static_print({0})
tl.static_assert({0})
tl.static_assert({0} == 3, 'three')
tl.device_assert({0} > 0, 'positive')
tl.device_assert({0})
tl.assume({0} > 0)
tl.assume({0})
tl.debug_barrier()
tl.atomic_add({0}, 1)
tl.store({0}, 1)
z = tl.load({0})
z, w = tl.split({0})
z = tl.join({0}, {0})
z = {0} if {0} > 0 else 0.5
z = tl.dot({0}, {0})
z = tl.trans({0})
z = [a for a in (1, 2)]
z = tl.constexpr({0})
z = {0} == 1 or {0} == 2
z = 1 if {0} else None
type X = int
tl.device_print('%d "quoted"', {0})
'''.strip().split("\n"))
STATEMENTS += (
    "{0} = '''// text\n*/ \\\\ ??/ '''",
    "'''a string */ of // its own'''",
)
COMMENTS = (
    '# a comment */ with an end',
    '# ends in a backslash \\',
    '# ends in a trigraph ??/',
    '# gr\xf6\xdfe \u2014 \u540d\u524d \u2028 end',
    '# /* open',
    '# "quoted" \'text\' %d %s {} {{ }} {% raw %} {# x #}',
    '#\ttab\tbed',
    '# \x0c form feed',
    '#',
    '#!/bin/sh',
    '# type: ignore[x] # noqa',
    '# {{ 1/0 }}',
    '# \\u0041 \\n \\',
    '# \x00',
    '#: <b>&amp;</b> $x `y`',
    '# \U0001f600',
    '# ends in a backslash and blanks \\  ',
    '# \u202e right to left',
    '# L12: not a line',
    "#" + " long" * 60,
    "# " + "x" * 300,
)
# fmt: on
