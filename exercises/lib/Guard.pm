# What a file that is handed in for a grade may call.
package Guard;
use strict;
use warnings;
use Source qw(variant);
use Exporter qw(import);

our @EXPORT_OK = qw(forbidden);

# The C library's functions that compute, print or wait. None of them opens a file, starts or ends a
# process, or makes memory that several processes share.
my $math = join '|', qw(a?(?:cos|sin|tan)h? atan2 cbrt ceil copysign erfc? exp exp2 expm1 fabs fdim floor fma fmax fmin fmod
    frexp hypot i?logb ldexp [lt]gamma log log10 log1p log2 l?lrint l?lround modf nan nearbyint nextafter pow remainder
    remquo rint round scalbl?n sqrt trunc);
my $computes = join '|', qw(is[a-z]+ to(?:low|upp)er mem(?:cpy|move|set|r?chr|cmp|mem) str[a-z]+ s?rand(?:om|_r)? [dl]rand48
    malloc calloc realloc free aligned_alloc posix_memalign abort exit _exit _Exit l?l?abs l?l?div qsort bsearch
    ato(?:i|l|ll|f) getenv getopt(?:_long)? optarg optind optopt opterr);
my $prints = join '|', qw(v?s?n?printf v?fprintf v?s?scanf puts putchar putc fputs fputc fwrite fflush fclose perror getchar
    fgets f?getc setv?buf stdin stdout stderr check_open);
my $waits = join '|', qw(time clock clock_gettime gettimeofday difftime localtime gmtime nanosleep usleep sleep sched_yield
    poll sysconf getpid gethostname pthread_\w+ thrd_\w+ mtx_\w+ cnd_\w+);
my $compiler = join '|', qw(__errno_location __stack_chk_fail __assert_fail __ctype_\w+_loc _GLOBAL_OFFSET_TABLE_
    __[a-z]+[sdtxh][fic]\d?);
my $libraries = join '|', 'nccl\w+', 'cublas\w+', 'cuda(?!GraphDebugDotPrint)\w+', 'P?MPI_(?!File_|Comm_spawn|T_)\w+',
    'ompi_mpi_\w+';
my $harmless = qr/^(?:__isoc\d\d_)?(?:(?:$math)[fl]?|$computes|$prints|$waits|$compiler|$libraries)$/;

# What a file that is handed in calls, by its object, and no exercise needs; or ''. What else it defines than
# the exercise's functions becomes local, so that nobody takes it for the library's.
sub forbidden {
    my ($ex, $object, $harness, $check) = @_;
    my %there = map { $_ => 1 } symbols($check, '[A-TX-Z]');
    delete @there{qw(check check_setup)};
    my $ours = variant($ex, 'starter') . variant($ex, 'solution');
    my @others = grep { !$there{$_} && s/^__(\w+)_chk$/$1/r !~ $harmless && $ours !~ /\b\Q$_\E\(/ } symbols($object, '[UwvC]');
    return 'It calls ' . join(', ', @others[0 .. ($#others < 4 ? $#others : 4)])
        . ': an exercise needs only NCCL, CUDA, MPI and what computes or prints.' if @others;
    return 'It has assembler that calls the kernel.' if `objdump -d '$object'` =~ /\t(?:syscall|sysenter|int +\$0x80|svc|sc)\b/;
    my @asked = grep { !/$harmless/ } symbols($check, 'U'), 'exercise_main';
    system('objcopy', (map { "--keep-global-symbol=$_" } @asked), $object) == 0 or die "objcopy fails\n";
    return '';
}

# The names of an object that nm gives such a letter: U is one that it needs, T one that it has. It would load
# LLVM first, where clang is installed, if it were not told to load no plugin.
sub symbols {
    my ($object, $letters) = @_;
    return `nm --plugin=none '$object'` =~ /^(?:[0-9a-f]+)? +$letters (\S+)$/gm;
}

1;
