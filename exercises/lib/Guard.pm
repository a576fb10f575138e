# What a file that is handed in for a grade may include and call.
package Guard;
use strict;
use warnings;
use Cwd qw(abs_path);
use POSIX ();
use Source qw(quoted read_file variant);
use Exporter qw(import);

our @EXPORT_OK = qw(forbidden_object forbidden_source lacking without_comments);

# The C library's functions that compute, print or wait. None of them opens a file, starts or ends a
# process, or makes memory that several processes share. (check_open and check_setenv are the frame's.)
my $math = join '|', qw(a?(?:cos|sin|tan)h? atan2 cbrt ceil copysign erfc? exp exp2 expm1 fabs fdim floor fma fmax fmin fmod
    frexp hypot i?logb ldexp [lt]gamma log log10 log1p log2 l?lrint l?lround modf nan nearbyint nextafter pow remainder
    remquo rint round scalbl?n sqrt trunc);
my $computes = join '|', qw(is[a-z]+ to(?:low|upp)er mem(?:cpy|move|set|r?chr|cmp|mem) str[a-z]+ s?rand(?:om|_r)? [dl]rand48
    malloc calloc realloc free aligned_alloc posix_memalign abort exit _exit _Exit l?l?abs l?l?div qsort bsearch
    ato(?:i|l|ll|f) getenv getopt(?:_long)? optarg optind optopt opterr);
my $prints = join '|', qw(v?s?n?printf v?fprintf v?s?scanf puts putchar putc fputs fputc fwrite fflush fclose perror getchar
    fgets f?getc setv?buf stdin stdout stderr check_open check_setenv);
my $waits = join '|', qw(time clock clock_gettime gettimeofday difftime localtime gmtime nanosleep usleep sleep sched_yield
    poll sysconf getpid gethostname pthread_\w+ thrd_\w+ mtx_\w+ cnd_\w+);
my $compiler = join '|', qw(__errno_location __stack_chk_fail __assert_fail __cxa_atexit __dso_handle _Unwind_Resume __cxa_guard_\w+ __gxx_personality_v0 atexit __ctype_\w+_loc _GLOBAL_OFFSET_TABLE_
    __[a-z]+[sdtxh][fic]\d?);
my $libraries = join '|', 'nccl\w+', 'cublas\w+', 'cuda(?!GraphDebugDotPrint)\w+', '__(?:cuda|kernel_)\w+', 'standin_reach_\w+', 'P?MPI_(?!File_|Comm_spawn|T_)\w+',
    'ompi_mpi_\w+';
my $harmless = qr/^(?:__isoc\d\d_)?(?:(?:$math)[fl]?|$computes|$prints|$waits|$compiler|$libraries)$/;

# What is wrong with a file, by what the preprocessor makes of it; or ''. It says with each line from which file it is.
sub forbidden_source {
    my ($file, $preprocessed, @folders) = @_;
    @folders = grep { defined } map { abs_path($_) } @folders;
    my %own = map { $_ => 1 } $file, '<built-in>', '<command-line>', '<command line>';
    my ($in, $text) = ($file, '');
    for (split /\n/, $preprocessed) {
        if (/^# \d+ "((?:[^"\\]|\\.)*)"((?: \d)*)/) {
            my ($name, $flags) = ($1 =~ s/\\(.)/$1/gr, $2);
            my $real = $own{$name} ? $name : abs_path($name) // $name;
            return "It includes $name: only the headers of the system and of the course can be included."
                if $flags =~ /1/ && !$own{$name} && !grep { index($real, "$_/") == 0 } @folders;
            return 'It has a line that begins with #line.' if $flags eq '' && $name ne $in && !$own{$name};
            $in = $name;
        } elsif ($in eq $file) {
            $text .= "$_\n";
        }
    }
    return forbidden_text($text) || forbidden_text(without_comments(read_file($file)));
}

# A source as the preprocessor sees it, without comments.
sub without_comments {
    my ($text) = @_;
    $text =~ s/\?\?=/#/g;
    $text =~ s/\?\?\//\\/g;
    $text =~ s/\\\r?\n//g;
    return $text =~ s{("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|//[^\n]*|/\*.*?\*/}{$1 // ' '}gser;
}

# Assembler, also in the strings of attributes and of #ident, which GCC writes into its assembler as they are. A
# string becomes "", or "!" if it is more than a name; numbers may have apostrophes in C++.
sub forbidden_text {
    my ($text) = @_;
    $text =~ s{(?<!\w)\d(?:'?[\w.])*|R"([^\s()]*)\((.*?)\)\g1"|"((?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)*'}
        {($2 // $3 // '') =~ /^[\w.+-]*$/ ? '""' : '"!"'}gse;
    return 'It has assembler, which no exercise needs.' if $text =~ /\b(?:asm|__asm|__asm__)\b/;
    return 'It has a string in an attribute or in #ident that could be assembler.'
        if $text =~ /^\s*#\s*(?:ident|sccs)\b/m || $text =~ /(?:\[|<:)\s*(?:\[|<:)(?:(?!\]\s*\])[^;{}])*"!"/
        || grep { /"!"/ } $text =~ /\b__attribute(?:__)?\s*(\((?:[^()]++|(?-1))*+\))/g;
    return '';
}

# What an object calls, or has, that no exercise needs; or ''. What else it defines than the exercise's functions
# becomes local, so that nobody takes it for the library's.
sub forbidden_object {
    my ($ex, $object, $check) = @_;
    my %there = map { $_ => 1 } symbols($check, '[A-TX-Z]');
    delete @there{qw(check check_setup)};
    my $ours = variant($ex, 'starter') . variant($ex, 'solution');
    my @others = grep { !$there{$_} && s/^__(\w+)_chk$/$1/r !~ $harmless && $ours !~ /\b\Q$_\E\(/ } symbols($object, '[UwvC]');
    return 'It calls ' . join(', ', @others[0 .. ($#others < 4 ? $#others : 4)])
        . ': an exercise needs only NCCL, CUDA, MPI and what computes or prints.' if @others;
    my $code = machine_code($object);
    return $code if $code;
    my @asked = grep { !/$harmless/ } symbols($check, 'U'), 'exercise_main';
    system('objcopy', (map { "--keep-global-symbol=$_" } @asked), $object) == 0 or die "objcopy fails\n";
    return '';
}

# A section for code holds what the compiler has made of functions: no data, which might be code, and no call of the
# kernel, also between instructions (syscall and ret, in a constant). Data objects would not be disassembled by objdump -d.
sub machine_code {
    my ($object) = @_;
    my $quoted = quoted($object);
    my %code;
    while (`objdump -h $quoted` =~ /^ *\d+ (\S+) .*\n +(.*\bCODE\b.*)$/gm) {
        $code{$1} = 1;
        return 'It has a section of code that can be written to.' if $2 !~ /\bREADONLY\b/;
    }
    for (split /\n/, `objdump -t $quoted`) {
        return "It has data in a section for code: $2." if /^[0-9a-f]+ .{6}O (\S+)\t\S+ +(\S+)/ && $code{$1};
    }
    my $sections = join ' ', map { '-j ' . quoted($_) } sort keys %code;
    my $listing = $sections ? `objdump -D $sections $quoted` : '';
    my $bytes = join '', $listing =~ /^ +[0-9a-f]+:\t((?:[0-9a-f]{2} )+)/gm;
    return 'It has assembler that calls the kernel.' if $listing =~ /\t(?:syscall|sysenter|int +\$0x80|svc|sc)\b/
        || (POSIX::uname())[4] eq 'x86_64' && $bytes =~ /0f 05 c3/;
    return '';
}

# What keeps an object from becoming a program, in words that lead on: functions that the task asks for, which it does
# not define, or arrays that are too large; or ''.
sub lacking {
    my ($ex, $object, $check) = @_;
    my %has = map { $_ => 1 } symbols($object, '[TtWD]');
    my $solution = variant($ex, 'solution');
    my @asked = $ex->{setup} eq 'program' ? 'exercise_main' : grep { $solution =~ /\b\Q$_\E\(/ && !/$harmless/ } symbols($check, 'U');
    my @lacks = map { s/^exercise_//r } grep { !$has{$_} } @asked;
    return 'It has no function ' . join(' and no ', @lacks) . ", and the task asks for it. Has it got another name?"
        . " The task comes back with: make exercise N=$ex->{number} RESET=1" if @lacks;
    my $bytes = 0;
    no warnings 'portable'; # more than 4 GiB
    $bytes += hex $1 while `objdump -h @{[quoted($object)]}` =~ /^ *\d+ \.l?bss\S* +([0-9a-f]+)/gm;
    return sprintf 'Its global and static arrays take %.1f GiB: allocate so much with malloc or cudaMalloc.', $bytes / 2**30
        if $bytes > 2**30;
    return '';
}

# The names of an object that nm gives such a letter: U is one that it needs, T one that it has. It would load
# LLVM first, where clang is installed, if it were not told to load no plugin.
sub symbols {
    my ($object, $letters) = @_;
    return `nm --plugin=none @{[quoted($object)]}` =~ /^(?:[0-9a-f]+)? +$letters (\S+)$/gm;
}

1;
