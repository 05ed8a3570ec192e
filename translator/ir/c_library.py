"""Names that the headers and libraries of C have, and that a text must not give a meaning of its own.

nvcc includes C's headers before a text, and a C++ program links C's libraries: a kernel called `poll` would clash with a
declaration, or be called where another library wants the system's. From glibc's symbols and the declarations of its
headers; a test compares with what the machine has.
"""

from __future__ import annotations

import re

# Macros: neither a constant nor a variable can have such a name, since what stands behind it is put in its place.
MACROS = frozenset(
    """ADJ_ESTERROR ADJ_FREQUENCY ADJ_MAXERROR ADJ_MICRO ADJ_NANO ADJ_OFFSET ADJ_OFFSET_SINGLESHOT ADJ_OFFSET_SS_READ
    ADJ_SETOFFSET ADJ_STATUS ADJ_TAI ADJ_TICK ADJ_TIMECONST AIO_PRIO_DELTA_MAX BIG_ENDIAN BUFSIZ BYTE_ORDER
    CHARCLASS_NAME_MAX CLOCKS_PER_SEC COLL_WEIGHTS_MAX DECIMAL_DIG DELAYTIMER_MAX EOF EXIT_FAILURE EXIT_SUCCESS
    EXPR_NEST_MAX FILENAME_MAX FOPEN_MAX HOST_NAME_MAX INFINITY IOV_MAX LINE_MAX LITTLE_ENDIAN LOGIN_NAME_MAX L_ctermid
    L_cuserid L_tmpnam MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MOD_CLKA MOD_CLKB
    MOD_ESTERROR MOD_FREQUENCY MOD_MAXERROR MOD_MICRO MOD_NANO MOD_OFFSET MOD_STATUS MOD_TAI MOD_TIMECONST MQ_PRIO_MAX
    NAME_MAX NAN NFDBITS NGROUPS_MAX NULL NZERO PATH_MAX PDP_ENDIAN PIPE_BUF P_tmpdir RE_DUP_MAX RTSIG_MAX SEM_VALUE_MAX
    STA_CLK STA_CLOCKERR STA_DEL STA_FLL STA_FREQHOLD STA_INS STA_MODE STA_NANO STA_PLL STA_PPSERROR STA_PPSFREQ
    STA_PPSJITTER STA_PPSSIGNAL STA_PPSTIME STA_PPSWANDER STA_RONLY STA_UNSYNC TIMER_ABSTIME TIME_UTC TMP_MAX TTY_NAME_MAX
    WCONTINUED WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WORD_BIT WSTOPPED WSTOPSIG
    WTERMSIG WUNTRACED alloca assert assert_perror errno issubnormal math_errhandling offsetof stderr stdin stdout strdupa
    strndupa""".split()
)
MACRO_FAMILY = re.compile(
    r"M_(E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)(l|f\d*x?)?|(FLT|DBL|LDBL)_[A-Z0-9_]+"
    r"|FP_(NAN|INFINITE|ZERO|SUBNORMAL|NORMAL|L?LOGB\w+|ILOGB\w+|INT_[A-Z]+|FAST_\w+)|(HUGE_VAL|SNAN)(L|_?F\d*X?)?"
    r"|(U?INT(_?(FAST|LEAST))?(8|16|32|64|PTR|MAX)?|U?(CHAR|SHRT|LONG|LLONG|LONG_LONG)|SCHAR|SIZE|SSIZE|PTRDIFF|RAND"
    r"|WCHAR|WINT|BOOL|SIG_ATOMIC)_(MAX|MIN|BIT|WIDTH|C)|(hto[bl]e|[bl]e)(16|32|64)(toh)?|NL_[A-Z]+MAX|(BC|XATTR)_\w+_MAX"
    r"|CLOCK_(REALTIME|MONOTONIC|BOOTTIME|PROCESS|THREAD|TAI)\w*|PTHREAD_\w+|RENAME_(EXCHANGE|NOREPLACE|WHITEOUT)"
    r"|FD_(SET|CLR|ISSET|ZERO|SETSIZE)|SEEK_(SET|CUR|END|DATA|HOLE)"
)
# Functions, variables and types: a variable may have such a name, but nothing outside of functions.
GLOBALS = frozenset(
    """FILE a64l abort abs accept accept4 access acct acos acosh addmntent addseverity adjtime adjtimex aio_cancel aio_cancel64
    aio_error aio_error64 aio_fsync aio_fsync64 aio_init aio_read aio_read64 aio_return aio_return64 aio_suspend
    aio_suspend64 aio_write aio_write64 alarm aligned_alloc alphasort alphasort64 arc4random arc4random_buf
    arc4random_uniform arch_prctl argp_err_exit_status argp_error argp_failure argp_help argp_parse argp_program_bug_address
    argp_program_version argp_program_version_hook argp_state_help argp_usage argz_add argz_add_sep argz_append argz_count
    argz_create argz_create_sep argz_delete argz_extract argz_insert argz_next argz_replace argz_stringify asctime asctime_r
    asin asinh asprintf at_quick_exit atan atan2 atanh atexit atof atoi atol backtrace backtrace_symbols
    backtrace_symbols_fd basename bcmp bcopy bind bind_textdomain_codeset bindresvport bindtextdomain blkcnt64_t blkcnt_t
    blksize_t brk bsd_signal bsearch btowc bzero c16rtomb c32rtomb c8rtomb cabs cacos cacosh caddr_t call_once calloc
    canonicalize canonicalize_file_name capget capset carg casin casinh catan catanh catclose catgets catopen cbrt ccos
    ccosh cexp cfgetispeed cfgetospeed cfmakeraw cfsetispeed cfsetospeed cfsetspeed chdir chflags chmod chown chroot cimag
    clearenv clearerr clearerr_unlocked clock clock_adjtime clock_getcpuclockid clock_getres clock_gettime clock_nanosleep
    clock_settime clock_t clockid_t clog clog10 clone close close_range closedir closefrom closelog cnd_broadcast
    cnd_destroy cnd_init cnd_signal cnd_timedwait cnd_wait comparison_fn_t confstr conj connect cookie_close_function_t
    cookie_io_functions_t cookie_read_function_t cookie_seek_function_t cookie_write_function_t copy_file_range copysign
    cosh cpow cproj creal creat creat64 crypt csin csinh csqrt ctan ctanh ctermid ctime ctime_r cuserid daddl daddr_t daemon
    daylight dcgettext dcngettext ddivl delete_module dev_t dfmal dgettext difftime dirfd dirname div div_t dl_iterate_phdr
    dladdr dladdr1 dlclose dlerror dlinfo dlmopen dlopen dlsym dlvsym dmull dn_comp dn_expand dn_skipname dngettext double_t
    dprintf drand48 drand48_r drem dsqrtl dsubl dup dup2 dup3 duplocale dysize eaccess ecvt ecvt_r endaliasent endfsent
    endgrent endhostent endmntent endnetent endnetgrent endprotoent endpwent endrpcent endservent endsgent endspent
    endttyent endusershell endutent endutxent environ envz_add envz_entry envz_get envz_merge envz_remove envz_strip
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait erand48 erand48_r erfc err error error_at_line
    error_message_count error_one_per_line error_print_progname error_t errx ether_aton ether_aton_r ether_hostton
    ether_line ether_ntoa ether_ntoa_r ether_ntohost euidaccess eventfd eventfd_read eventfd_write execl execle execlp execv
    execve execveat execvp execvpe exit exp10 explicit_bzero expm1 f32addf128 f32addf32x f32addf64 f32addf64x f32divf128
    f32divf32x f32divf64 f32divf64x f32fmaf128 f32fmaf32x f32fmaf64 f32fmaf64x f32mulf128 f32mulf32x f32mulf64 f32mulf64x
    f32sqrtf128 f32sqrtf32x f32sqrtf64 f32sqrtf64x f32subf128 f32subf32x f32subf64 f32subf64x f32xaddf128 f32xaddf64
    f32xaddf64x f32xdivf128 f32xdivf64 f32xdivf64x f32xfmaf128 f32xfmaf64 f32xfmaf64x f32xmulf128 f32xmulf64 f32xmulf64x
    f32xsqrtf128 f32xsqrtf64 f32xsqrtf64x f32xsubf128 f32xsubf64 f32xsubf64x f64addf128 f64addf64x f64divf128 f64divf64x
    f64fmaf128 f64fmaf64x f64mulf128 f64mulf64x f64sqrtf128 f64sqrtf64x f64subf128 f64subf64x f64xaddf128 f64xdivf128
    f64xfmaf128 f64xmulf128 f64xsqrtf128 f64xsubf128 faccessat fadd fallocate fallocate64 fanotify_init fanotify_mark fchdir
    fchflags fchmod fchmodat fchown fchownat fclose fcloseall fcntl fcntl64 fcvt fcvt_r fd_mask fd_set fdatasync fdim fdiv
    fdopen fdopendir feclearexcept fedisableexcept feenableexcept fegetenv fegetexcept fegetexceptflag fegetmode fegetround
    feholdexcept femode_t fenv_t feof feof_unlocked feraiseexcept ferror ferror_unlocked fesetenv fesetexcept
    fesetexceptflag fesetmode fesetround fetestexcept fetestexceptflag feupdateenv fexcept_t fexecve fflush fflush_unlocked
    ffma ffs ffsl fgetc fgetc_unlocked fgetgrent fgetgrent_r fgetpos fgetpos64 fgetpwent fgetpwent_r fgets fgets_unlocked
    fgetsgent fgetsgent_r fgetspent fgetspent_r fgetwc fgetwc_unlocked fgetws fgetws_unlocked fgetxattr fileno
    fileno_unlocked finite flistxattr float_t flock flockfile fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num
    fmaxmag fmemopen fmin fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmtmsg fmul fnmatch fopen fopen64
    fopencookie fork forkpty fpathconf fpclassify fpos64_t fpos_t fpregset_t fprintf fputc fputc_unlocked fputs
    fputs_unlocked fputwc fputwc_unlocked fputws fputws_unlocked fread fread_unlocked free freeaddrinfo freeifaddrs
    freelocale fremovexattr freopen freopen64 frexp fromfp fromfpx fsblkcnt64_t fsblkcnt_t fscanf fsconfig fseek fseeko
    fseeko64 fsetpos fsetpos64 fsetxattr fsfilcnt64_t fsfilcnt_t fsid_t fsmount fsopen fspick fsqrt fstat fstat64 fstatat
    fstatat64 fstatfs fstatfs64 fstatvfs fstatvfs64 fsub fsync ftell ftello ftello64 ftime ftok ftruncate ftruncate64
    ftrylockfile fts64_children fts64_close fts64_open fts64_read fts64_set fts_children fts_close fts_open fts_read fts_set
    ftw ftw64 funlockfile futimens futimes futimesat fwide fwprintf fwrite fwrite_unlocked fwscanf gai_cancel gai_error
    gai_strerror gai_suspend gamma gcvt get_avphys_pages get_current_dir_name get_nprocs get_nprocs_conf get_phys_pages
    getaddrinfo getaddrinfo_a getaliasbyname getaliasbyname_r getaliasent getaliasent_r getauxval getc getc_unlocked getchar
    getchar_unlocked getcontext getcpu getcwd getdate getdate_err getdate_r getdelim getdents64 getdirentries
    getdirentries64 getdomainname getdtablesize getegid getentropy getenv geteuid getfsent getfsfile getfsspec getgid
    getgrent getgrent_r getgrgid getgrgid_r getgrnam getgrnam_r getgrouplist getgroups gethostbyaddr gethostbyaddr_r
    gethostbyname gethostbyname2 gethostbyname2_r gethostbyname_r gethostent gethostent_r gethostid gethostname getifaddrs
    getipv4sourcefilter getitimer getline getloadavg getlogin getlogin_r getmntent getmntent_r getnameinfo getnetbyaddr
    getnetbyaddr_r getnetbyname getnetbyname_r getnetent getnetent_r getnetgrent getnetgrent_r getopt getopt_long
    getopt_long_only getpagesize getpass getpayload getpeername getpgid getpgrp getpid getppid getpriority getprotobyname
    getprotobyname_r getprotobynumber getprotobynumber_r getprotoent getprotoent_r getpt getpw getpwent getpwent_r getpwnam
    getpwnam_r getpwuid getpwuid_r getrandom getresgid getresuid getrlimit getrlimit64 getrpcbyname getrpcbyname_r
    getrpcbynumber getrpcbynumber_r getrpcent getrpcent_r getrusage gets getservbyname getservbyname_r getservbyport
    getservbyport_r getservent getservent_r getsgent getsgent_r getsgnam getsgnam_r getsid getsockname getsockopt
    getsourcefilter getspent getspent_r getspnam getspnam_r getsubopt gettext gettid gettimeofday getttyent getttynam getuid
    getusershell getutent getutent_r getutid getutid_r getutline getutline_r getutmp getutmpx getutxent getutxid getutxline
    getw getwc getwc_unlocked getwchar getwchar_unlocked getwd getxattr gid_t glob glob64 glob_pattern_p globfree globfree64
    gmtime gmtime_r gnu_dev_major gnu_dev_makedev gnu_dev_minor gnu_get_libc_release gnu_get_libc_version grantpt greg_t
    gregset_t group_member gsignal gtty h_errlist hasmntopt hcreate hcreate_r hdestroy hdestroy_r herror hsearch hsearch_r
    hstrerror htonl htons hypot iconv iconv_close iconv_open id_t if_freenameindex if_indextoname if_nameindex
    if_nametoindex ilogb imaxabs imaxdiv in6addr_any in6addr_loopback index inet6_opt_append inet6_opt_find inet6_opt_finish
    inet6_opt_get_val inet6_opt_init inet6_opt_next inet6_opt_set_val inet6_option_alloc inet6_option_append
    inet6_option_find inet6_option_init inet6_option_next inet6_option_space inet6_rth_add inet6_rth_getaddr inet6_rth_init
    inet6_rth_reverse inet6_rth_segments inet6_rth_space inet_addr inet_aton inet_lnaof inet_makeaddr inet_netof
    inet_network inet_nsap_addr inet_nsap_ntoa inet_ntoa inet_ntop inet_pton init_module initgroups initstate initstate_r
    innetgr ino64_t ino_t inotify_add_watch inotify_init inotify_init1 inotify_rm_watch insque intmax_t intptr_t ioctl
    ioperm iopl iruserok iruserok_af isalnum isalnum_l isalpha isalpha_l isascii isatty isblank isblank_l iscanonical
    iscntrl iscntrl_l isctype isdigit isdigit_l iseqsig isfdtype isfinite isgraph isgraph_l isgreater isgreaterequal isless
    islessequal islessgreater islower islower_l isnormal isprint isprint_l ispunct ispunct_l issignaling isspace isspace_l
    isunordered isupper isupper_l iswalnum iswalnum_l iswalpha iswalpha_l iswblank iswblank_l iswcntrl iswcntrl_l iswctype
    iswctype_l iswdigit iswdigit_l iswgraph iswgraph_l iswlower iswlower_l iswprint iswprint_l iswpunct iswpunct_l iswspace
    iswspace_l iswupper iswupper_l iswxdigit iswxdigit_l isxdigit isxdigit_l iszero j0 j1 jn jrand48 jrand48_r key_t kill
    killpg klogctl l64a labs lchmod lchown lckpwdf lcong48 lcong48_r ldexp ldiv ldiv_t lfind lgamma lgamma_r lgetxattr link
    linkat lio_listio lio_listio64 listen listxattr llabs lldiv lldiv_t llistxattr llogb llrint llround locale_t localeconv
    localtime localtime_r lockf lockf64 loff_t log10 log1p logb login login_tty logout logwtmp longjmp lrand48 lrand48_r
    lremovexattr lrint lround lsearch lseek lseek64 lsetxattr lstat lstat64 lutimes madvise makecontext mallinfo mallinfo2
    malloc malloc_info malloc_stats malloc_trim malloc_usable_size mallopt max_align_t mblen mbrlen mbrtoc16 mbrtoc32
    mbrtoc8 mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstowcs mbtowc mcheck mcheck_check_all mcheck_pedantic mcontext_t mcount
    memalign memccpy memchr memcmp memcpy memfd_create memfrob memmem memmove mempcpy memrchr memset mincore mkdir mkdirat
    mkdtemp mkfifo mkfifoat mknod mknodat mkostemp mkostemp64 mkostemps mkostemps64 mkstemp mkstemp64 mkstemps mkstemps64
    mktemp mktime mlock mlock2 mlockall mmap mmap64 mode_t modf modify_ldt moncontrol monstartup mount mount_setattr
    move_mount mprobe mprotect mq_close mq_getattr mq_notify mq_open mq_receive mq_send mq_setattr mq_timedreceive
    mq_timedsend mq_unlink mrand48 mrand48_r mremap msgctl msgget msgrcv msgsnd msync mtrace mtx_destroy mtx_init mtx_lock
    mtx_timedlock mtx_trylock mtx_unlock munlock munlockall munmap muntrace name_to_handle_at nan nanosleep nearbyint
    newlocale nextafter nextdown nexttoward nextup nftw nftw64 ngettext nice nl_langinfo nl_langinfo_l nlink_t nrand48
    nrand48_r ns_name_compress ns_name_ntop ns_name_pack ns_name_pton ns_name_skip ns_name_uncompress ns_name_unpack ntohl
    ntohs ntp_adjtime ntp_gettime ntp_gettimex nullptr_t obstack_alloc_failed_handler obstack_exit_failure obstack_free
    obstack_printf obstack_vprintf off64_t off_t on_exit open open64 open_by_handle_at open_memstream open_tree
    open_wmemstream openat openat64 opendir openlog openpty optarg opterr optind optopt parse_printf_format pathconf pause
    pclose perror personality pid_t pidfd_getfd pidfd_open pidfd_send_signal pipe pipe2 pivot_root pkey_alloc pkey_free
    pkey_get pkey_mprotect pkey_set poll popen ppoll prctl pread pread64 preadv preadv2 preadv64 preadv64v2 printf_size
    printf_size_info prlimit prlimit64 process_madvise process_mrelease process_vm_readv process_vm_writev profil
    program_invocation_name program_invocation_short_name pselect psiginfo psignal ptrace ptrdiff_t ptsname ptsname_r putc
    putc_unlocked putchar putchar_unlocked putenv putgrent putpwent puts putsgent putspent pututline pututxline putw putwc
    putwc_unlocked putwchar putwchar_unlocked pvalloc pwrite pwrite64 pwritev pwritev2 pwritev64 pwritev64v2 qecvt qecvt_r
    qfcvt qfcvt_r qgcvt qsort qsort_r quad_t quick_exit quotactl raise rand rand_r random random_r rawmemchr rcmd rcmd_af
    re_comp re_compile_fastmap re_compile_pattern re_exec re_match re_match_2 re_max_failures re_search re_search_2
    re_set_registers re_set_syntax re_syntax_options read readahead readdir readdir64 readdir64_r readdir_r readlink
    readlinkat readv realloc reallocarray realpath reboot recv recvfrom recvmmsg recvmsg regcomp regerror regexec regfree
    register_printf_function register_printf_modifier register_printf_specifier register_printf_type register_t remainder
    remap_file_pages remove removexattr remque remquo rename renameat renameat2 res_dnok res_hnok res_mailok res_mkquery
    res_nmkquery res_nquery res_nquerydomain res_nsearch res_nsend res_ownok res_query res_querydomain res_search res_send
    revoke rewind rewinddir rexec rexec_af rexecoptions rindex rint rmdir roundeven rpmatch rresvport rresvport_af ruserok
    ruserok_af ruserpass sbrk scalb scalbln scalbn scandir scandir64 scandirat scandirat64 scanf sched_get_priority_max
    sched_get_priority_min sched_getaffinity sched_getcpu sched_getparam sched_getscheduler sched_rr_get_interval
    sched_setaffinity sched_setparam sched_setscheduler sched_yield secure_getenv seed48 seed48_r seekdir select
    sem_clockwait sem_close sem_destroy sem_getvalue sem_init sem_open sem_post sem_timedwait sem_trywait sem_unlink
    sem_wait semctl semget semop semtimedop send sendfile sendfile64 sendmmsg sendmsg sendto setaliasent setbuf setbuffer
    setcontext setdomainname setegid setenv seteuid setfsent setfsgid setfsuid setgid setgrent setgroups sethostent
    sethostid sethostname setipv4sourcefilter setitimer setjmp setlinebuf setlocale setlogin setlogmask setmntent setnetent
    setnetgrent setns setpayload setpayloadsig setpgid setpgrp setpriority setprotoent setpwent setregid setresgid setresuid
    setreuid setrlimit setrlimit64 setrpcent setservent setsgent setsid setsockopt setsourcefilter setspent setstate
    setstate_r settimeofday setttyent setuid setusershell setutent setutxent setvbuf setxattr sgetsgent sgetsgent_r
    sgetspent sgetspent_r shm_open shm_unlink shmat shmctl shmdt shmget shutdown sig_atomic_t sig_t sigabbrev_np sigaction
    sigaddset sigaltstack sigandset sigblock sigdelset sigdescr_np sigemptyset sigevent_t sigfillset siggetmask sighandler_t
    sighold sigignore siginfo_t siginterrupt sigisemptyset sigismember siglongjmp signal signalfd signbit signgam
    significand sigorset sigpause sigpending sigprocmask sigqueue sigrelse sigreturn sigset sigset_t sigsetmask sigstack
    sigsuspend sigtimedwait sigval_t sigwait sigwaitinfo sincos sinh size_t sleep snprintf sockatmark socket socketpair
    socklen_t splice sprintf sprofil srand srand48 srand48_r srandom srandom_r sscanf ssignal ssize_t stack_t stat stat64
    statfs statfs64 statvfs statvfs64 statx stpcpy stpncpy strcasecmp strcasecmp_l strcasestr strcat strchr strchrnul strcmp
    strcoll strcoll_l strcpy strcspn strdup strerror strerror_l strerror_r strerrordesc_np strerrorname_np strfmon strfmon_l
    strfromd strfromf strfromf128 strfromf32 strfromf32x strfromf64 strfromf64x strfroml strfry strftime strftime_l strlen
    strncasecmp strncasecmp_l strncat strncmp strncpy strndup strnlen strpbrk strptime strptime_l strrchr strsep strsignal
    strspn strstr strtod strtod_l strtof strtof128 strtof128_l strtof32 strtof32_l strtof32x strtof32x_l strtof64 strtof64_l
    strtof64x strtof64x_l strtof_l strtoimax strtok strtok_r strtol strtol_l strtold strtold_l strtoq strtoul strtoul_l
    strtoumax strtouq strverscmp strxfrm strxfrm_l stty suseconds_t swab swapcontext swapoff swapon swprintf swscanf symlink
    symlinkat sync sync_file_range syncfs syscall sysconf sysinfo syslog system sysv_signal tcdrain tcflow tcflush tcgetattr
    tcgetpgrp tcgetsid tcsendbreak tcsetattr tcsetpgrp tdelete tdestroy tee telldir tempnam textdomain tfind tgamma tgkill
    thrd_create thrd_current thrd_detach thrd_equal thrd_exit thrd_join thrd_sleep thrd_yield time time_t timegm timelocal
    timer_create timer_delete timer_getoverrun timer_gettime timer_settime timer_t timerfd_create timerfd_gettime
    timerfd_settime times timespec_get timespec_getres timezone tmpfile tmpfile64 tmpnam tmpnam_r toascii tolower tolower_l
    totalorder totalordermag toupper toupper_l towctrans towctrans_l towlower towlower_l towupper towupper_l trunc truncate
    truncate64 tsearch tss_create tss_delete tss_get tss_set ttyname ttyname_r ttyslot twalk twalk_r tzname tzset u_char
    u_int u_long u_quad_t u_short ualarm ucontext_t ufromfp ufromfpx uid_t uint uintmax_t uintptr_t ulckpwdf ulimit ulong
    umask umount umount2 uname ungetc ungetwc unlink unlinkat unlockpt unsetenv unshare updwtmp updwtmpx useconds_t
    uselocale ushort usleep utime utimensat utimes utmpname utmpxname va_list valloc vasprintf vdprintf verr verrx
    versionsort versionsort64 vfork vfprintf vfscanf vfwprintf vfwscanf vhangup vlimit vmsplice vprintf vscanf vsnprintf
    vsprintf vsscanf vswprintf vswscanf vsyslog vwarn vwarnx vwprintf vwscanf wait wait3 wait4 waitid waitpid warn warnx
    wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat wcschr wcschrnul wcscmp wcscoll wcscoll_l wcscpy wcscspn wcsdup
    wcsftime wcsftime_l wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp wcsncpy wcsnlen wcsnrtombs wcspbrk wcsrchr
    wcsrtombs wcsspn wcsstr wcstod wcstod_l wcstof wcstof128 wcstof128_l wcstof32 wcstof32_l wcstof32x wcstof32x_l wcstof64
    wcstof64_l wcstof64x wcstof64x_l wcstof_l wcstoimax wcstok wcstol wcstol_l wcstold wcstold_l wcstombs wcstoq wcstoul
    wcstoul_l wcstoumax wcstouq wcswcs wcswidth wcsxfrm wcsxfrm_l wctob wctomb wctrans wctrans_l wctype wctype_l wcwidth
    wmemchr wmemcmp wmemcpy wmemmove wmempcpy wmemset wordexp wordfree wprintf write writev wscanf y0 y1 yn""".split()
)
GLOBAL_FAMILY = re.compile(
    r"f(32|64)x?(add|sub|mul|div|fma|sqrt)|u_?int\d+_t|u?int(_fast|_least)?\d+_t|(pthread|posix)_\w+"
)
VARIANT = re.compile(r"(f|l|f\d+x?)(_[rl])?$")  # of a function of doubles or of longs: expf, lgammaf_r, strtof32_l


def is_macro(name: str) -> bool:
    """Whether C's headers define a macro of this name."""
    return name in MACROS or MACRO_FAMILY.fullmatch(name) is not None


def is_global(name: str) -> bool:
    """Whether C's headers or libraries have something of this name outside of functions, for one type at least."""
    return name in GLOBALS or GLOBAL_FAMILY.fullmatch(name) is not None


def for_doubles(name: str) -> str:
    """What a function is called without the ending of its type: `exp` for `expf`."""
    return VARIANT.sub("", name)
