# What an exercise is (README.md beside this file), and how one is built, run and judged. The
# learner's front is `exercise`, the instructor's `grade`; tests/exercises/exercises.t runs them all.
package Exercises;
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::MD5 qw(md5_hex);
use Exporter qw(import);
use File::Basename qw(basename dirname);
use File::Path qw(make_path remove_tree);
use POSIX ();
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(build_checker can_run compile_flags judge lessons load_all parse read_file readme_line run_limited
    same_answer starter_path variant write_file $backend %kinds $root $top);

our $top     = dirname(dirname(abs_path(__FILE__)));
our $root    = $ENV{EXERCISE_ROOT} || $top; # where the reader's files lie; a test has its own
our $backend = $ENV{EXERCISE_BACKEND} || 'cpu';
our %kinds = (complete => 'add what is missing', repair => 'find the mistake', predict => 'answer a question',
    build => 'write it yourself', fast => 'the same result in less time');

# The settings with which the programs run: as in the Makefile and the tests.
$ENV{OMPI_MCA_mpi_yield_when_idle}             //= 1;
$ENV{OMPI_MCA_hwloc_base_binding_policy}       //= 'none';
$ENV{PRTE_MCA_hwloc_default_binding_policy}    //= 'none';
if ($> == 0) {
    $ENV{OMPI_ALLOW_RUN_AS_ROOT}         = 1;
    $ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} = 1;
}
if ($backend eq 'cpu') {
    my %quick = (OMPI_MCA_pml => 'ob1', HWLOC_COMPONENTS => '-linuxio',
        HWLOC_PLUGINS_PATH => '/nowhere', PMIX_MCA_gds => 'hash');
    $ENV{$_} //= $quick{$_} for keys %quick;
}
# What the caller has set for other programs is not for these.
delete @ENV{grep { /^(NCCL_(CHECK|CPU|TIMELINE)|CPU_(DEVICES|HOSTS)$)/ } keys %ENV};

sub read_file {
    my ($name) = @_;
    open my $in, '<', $name or return '';
    local $/;
    return <$in> // '';
}

sub write_file {
    my ($name, $text) = @_;
    open my $out, '>', $name or die "$name: $!\n";
    print $out $text;
    close $out or die "$name: $!\n";
}

# --- The source of an exercise -----------------------------------------------------------

# Reads exercises/NN.M-name.c or .txt: see README.md. Dies with the line that is wrong.
sub parse {
    my ($path) = @_;
    my ($number, $name, $ending) = basename($path) =~ /^(\d\d\.\d+)-([\w-]+)\.(c|txt)$/
        or die "$path: not named NN.M-name.c or NN.M-name.txt\n";
    my %ex = (number => $number, name => $name, ending => $ending, source => $path,
        hint => [], wrong => [], right => [], file => [], check => '', setup => 'comm', run => []);
    my ($section, $last, $choice, $line) = ('head', undef, undef, 0);
    for (split /^/, read_file($path)) {
        $line++;
        my $where = "$path:$line";
        if (!m{^\s*//: ?(.*?)\s*$}) {
            if ($section eq 'check') {
                $ex{check} = "#line $line \"check-$number.c\"\n" if $ex{check} eq '';
                $ex{check} .= $_;
            } elsif ($section eq 'file') {
                $choice ? ($choice->{now} .= $_) : push @{ $ex{file} }, $_;
            } elsif (/\S/) {
                die "$where: before `//: file` every line begins with //:\n";
            }
            next;
        }
        my $said = $1;
        if ($section eq 'head' && $said =~ /^ +(\S.*)/ && $last) {
            $$last .= " $1";
        } elsif ($said =~ /^(file|check)$/) {
            $section = $1;
        } elsif ($section eq 'head' && $said =~ /^(\w+) (.+)/) {
            $last = head_line(\%ex, $1, $2, $where);
        } elsif ($section eq 'file' && $said eq 'starter') {
            $choice = { starter => '' };
            push @{ $ex{file} }, $choice;
            chosen($choice, 'starter');
        } elsif ($section eq 'file' && $said eq 'solution' && $choice) {
            chosen($choice, 'solution');
        } elsif ($section eq 'file' && $choice && $said =~ /^wrong ([\w-]+)(?:: (.+))?$/) {
            chosen($choice, $1);
            push @{ $ex{wrong} }, { name => $1, says => $2 } if $2;
        } elsif ($section eq 'file' && $choice && $said =~ /^right ([\w-]+)$/) {
            chosen($choice, $1);
            push @{ $ex{right} }, $1;
        } elsif ($section eq 'file' && $said eq 'end' && $choice) {
            chosen($choice, undef);
            $choice = undef;
        } else {
            die "$where: what is `//: $said` here?\n";
        }
    }
    complete_or_die(\%ex);
    return \%ex;
}

# What follows in a block goes to the alternative of this name.
sub chosen {
    my ($choice, $name) = @_;
    $choice->{ $choice->{name} } = delete $choice->{now} if defined $choice->{name};
    $choice->{name} = $name;
    $choice->{now}  = '' if defined $name;
    delete $choice->{name} if !defined $name;
}

# One line of the head; a reference to the text that a next line would continue.
sub head_line {
    my ($ex, $key, $value, $where) = @_;
    if ($key eq 'hint' || $key eq 'run') {
        push @{ $ex->{$key} }, $value;
        return \$ex->{$key}[-1];
    }
    if ($key eq 'wrong' && $value =~ m{^([\w-]+) (s/.*/[gs]*): (.+)$}) {
        push @{ $ex->{wrong} }, { name => $1, change => $2, says => $3 };
        return \$ex->{wrong}[-1]{says};
    }
    if ($key eq 'wrong' && $value =~ /^(.+?): (.+)$/) {
        push @{ $ex->{wrong} }, { name => $1, says => $2 };
        return \$ex->{wrong}[-1]{says};
    }
    $key =~ /^(kind|title|trains|learned|why|ranks|clock|setup|calls|only|no|starter|build|seconds|answer|within|otherwise|proof|seen)$/
        or die "$where: what is `$key`?\n";
    die "$where: `$key` twice\n" if defined $ex->{$key} && $key ne 'setup';
    $ex->{$key} = $value;
    return \$ex->{$key};
}

sub complete_or_die {
    my ($ex) = @_;
    my $path = $ex->{source};
    my @missing = grep { !defined $ex->{$_} } qw(kind title trains learned why),
        $ex->{ending} eq 'txt' ? 'answer' : ('ranks', 'starter');
    die "$path: no `//: $_`\n" for @missing;
    die "$path: kind $ex->{kind} is none of " . join(' ', sort keys %kinds) . "\n" if !$kinds{ $ex->{kind} };
    die "$path: three hints, not " . @{ $ex->{hint} } . "\n" if @{ $ex->{hint} } != 3;
    die "$path: at least three wrong answers\n" if @{ $ex->{wrong} } < 3;
    die "$path: setup is comm, mpi or program\n" if $ex->{setup} !~ /^(comm|mpi|program)$/;
    ($ex->{counts}, $ex->{also}) = map { [split] } (split /\|/, $ex->{ranks} // '', 2), '', '';
    $ex->{lesson} = substr $ex->{number}, 0, 2;
}

# All sources of a folder, in order.
sub load_all {
    my ($folder) = @_;
    my @all = map { parse($_) } glob("'$folder'/[0-9][0-9].*-*.c"), glob("'$folder'/[0-9][0-9].*-*.txt");
    return sort { $a->{lesson} <=> $b->{lesson} || rank_of($a) <=> rank_of($b) } @all;
}

sub rank_of { return (split /\./, $_[0]{number})[1] }

# Where the file lies that the reader edits; undef if there is no such lesson.
sub starter_path {
    my ($ex) = @_;
    my ($lesson) = glob "'$root'/$ex->{lesson}-*/";
    return $lesson && $lesson . 'exercises/' . rank_of($ex) . "-$ex->{name}.$ex->{ending}";
}

# The exercises of each lesson.
sub lessons {
    my (%of, @order);
    for (@_) {
        push @order, $of{ $_->{lesson} } = [] if !$of{ $_->{lesson} };
        push @{ $of{ $_->{lesson} } }, $_;
    }
    return @order;
}

# What the lesson's README says of it.
sub readme_line {
    my ($ex) = @_;
    my ($file) = starter_path($ex) =~ m{([^/]+/[^/]+)$};
    return "- [$ex->{number} $ex->{title}]($file) ($ex->{kind}): $ex->{trains}\n";
}

# The text of the reader's file: as it is at first ('starter'), solved ('solution'), or with one
# of the other answers, right or wrong.
sub variant {
    my ($ex, $name) = @_;
    my $what = "$ex->{number} $ex->{title} ($ex->{kind})";
    my $again = "make exercise N=$ex->{number}";
    if ($ex->{ending} eq 'txt') {
        my $answer = $name eq 'starter' ? '' : $name eq 'solution' ? $ex->{answer} : $name;
        return "$what\n" . join('', @{ $ex->{file} })
            . "\nWrite your answer after the colon, then: $again\n\nanswer: $answer\n"
            =~ s/ +$//mr;
    }
    my ($wrong) = grep { $_->{name} eq $name } @{ $ex->{wrong} };
    my $base = $wrong && $wrong->{change} ? 'solution' : $name;
    my $text = join '', map { ref $_ ? $_->{$base} // $_->{solution} // '' : $_ } @{ $ex->{file} };
    if ($wrong && $wrong->{change}) {
        my ($from, $to, $flags) = $wrong->{change} =~ m{^s/((?:\\.|[^/\\])*)/((?:\\.|[^/\\])*)/([gs]*)$}
            or die "$ex->{source}: $wrong->{change} is no change\n";
        $from = $flags =~ /s/ ? qr/$from/s : qr/$from/;
        $to =~ s/\\n/\n/g;
        my $put = sub { my @g = @_; $to =~ s{\\(.)|\$(\d)}{defined $1 ? $1 : $g[$2 - 1]}ger };
        my $hits = $flags =~ /g/ ? $text =~ s/$from/$put->($1, $2, $3)/ge : $text =~ s/$from/$put->($1, $2, $3)/e;
        die "$ex->{source}: $wrong->{name} changes nothing\n" if !$hits;
    }
    return "// $what\n// $again\n$text";
}

# --- Building ----------------------------------------------------------------------------

# Flags for the compiler and the linker, which make says; and what MPI's compiler starts. It is started
# itself, for the wrapper takes as long as linking does.
my ($mpicc, $compile, $link, $cc, $mpi);
sub compile_flags {
    ($mpicc, $compile, $link) = @ENV{qw(MPICC EXERCISE_COMPILE EXERCISE_LINK)};
    if (!$compile) {
        my @said = split /\n/, `make -s --no-print-directory -C '$top' BACKEND=$backend exercise-flags`;
        die "make exercise-flags says nothing\n" if @said < 3;
        ($mpicc, $compile, $link) = @said[-3 .. -1];
    }
    my ($shown) = split /\n/, `$mpicc -show 2>/dev/null` // '';
    ($cc, $mpi) = ($shown // '') =~ /^(\S+)( .*)$/ ? ($1, $2) : ($mpicc, '');
    make_path("$top/build/exercises");
    lesson_header();
    mpirun();
}

# Runs the compiler, everything it says to a file; its exit code.
sub quietly {
    my ($arguments, $out, $memory) = @_;
    my ($code, $why) = run_limited("$cc $arguments $mpi", '.', $out, $out, 60, $memory // 0);
    write_file($out, "$why\n") if $why;
    return $code;
}

# The frame and the hidden half of an exercise as objects; made again when a source has changed.
sub build_checker {
    my ($ex, $dir) = @_;
    make_path($dir);
    my $header  = lesson_header();
    my $flags   = md5_hex("$cc $compile $header");
    my $harness = "$top/build/exercises/harness-" . substr(md5_hex($flags, map { read_file($_) }
        "$top/exercises/harness.c", "$top/exercises/harness.h"), 0, 12) . '.o';
    compile_once("$top/exercises/harness.c", $harness, lesson_header('whole') . ' ' . strict());
    my %setups = (comm => 0, mpi => 1, program => 2);
    my $text = "#include \"harness.h\"\n#include <unistd.h>\nconst int check_setup = $setups{ $ex->{setup} };\n$ex->{check}";
    my $object = "$dir/check-$ex->{number}-" . substr(md5_hex($flags, $text, basename($harness)), 0, 12) . '.o';
    if (!-f $object) {
        write_file("$dir/check.c", $text);
        compile_once("$dir/check.c", $object, "$header -I'$top/exercises' " . strict());
    }
    return ($harness, $object);
}

# Where lesson.h and what it includes are found first: headers that only declare the functions, which are
# in the frame's object; or, for the frame, that define them for all. gcc reads the former once for all (GCC's
# manual, "Using Precompiled Headers").
my %header;
sub lesson_header {
    my ($whole) = @_;
    return $header{ $whole // '' } //= do {
        my %text = map { $_ => read_file("$top/common/$_.h") } qw(check options table lesson);
        my $dir = "$top/build/exercises/"
            . substr(md5_hex("$cc $compile", @text{ sort keys %text }, read_file(abs_path(__FILE__))), 0, 12) . ($whole ? '-whole' : '');
        for (values %text) {
            s/^static inline ((?:[^{};=]|\n)+\)) (\{\n.*?^\})$/$whole ? "$1 $2" : "$1;" . $2 =~ tr{\n}{}cdr/gems;
            s/^static (?!const|inline)([^{}=]+)( = .*;)$/$whole ? "$1$2" : "extern $1;"/gme;
            s/^static struct (\{\n.*?^\} lesson_checks;)$/$1 =~ tr{\n}{}cdr/gems if !$whole;
        }
        if (!-f "$dir/lesson.h") {
            make_path($dir);
            for my $name (qw(check options table lesson)) { # lesson.h last: it says that all are there
                write_file("$dir/$name.$$", "#line 1 \"$top/common/$name.h\"\n$text{$name}");
                rename "$dir/$name.$$", "$dir/$name.h";
            }
        }
        compile_once("$dir/lesson.h", "$dir/lesson.h.gch", '-x c-header') if !$whole && `$cc --version 2>&1` !~ /clang/;
        "-I'$dir'";
    };
}

# The tests take no warning of the course's own.
sub strict { return $ENV{EXERCISE_STRICT} ? '-Werror' : '' }

sub compile_once {
    my ($source, $object, $flags) = @_;
    return if -f $object;
    my $new = "$object.$$";
    my $said = "$new.log";
    my $code = quietly("$flags $compile -c '$source' -o '$new'", $said);
    my $text = read_file($said);
    unlink $said;
    die "$source does not compile:\n$text" if $code != 0;
    rename $new, $object or die "$object: $!\n";
}

# --- What a graded file may call -----------------------------------------------------------

# The C library's functions that compute, print or wait. None of them opens a file, starts or ends a
# process, or makes memory that several processes share.
my $math = join '|', qw(a?(?:cos|sin|tan)h? atan2 cbrt ceil copysign erfc? exp exp2 expm1 fabs fdim floor fma fmax fmin fmod
    frexp hypot i?logb ldexp [lt]gamma log log10 log1p log2 l?lrint l?lround modf nan nearbyint nextafter pow remainder
    remquo rint round scalbl?n sqrt trunc);
my $computes = join '|', qw(is[a-z]+ to(?:low|upp)er mem(?:cpy|move|set|r?chr|cmp|mem) str[a-z]+ s?rand(?:om|_r)? [dl]rand48
    malloc calloc realloc free aligned_alloc posix_memalign abort exit _exit _Exit l?l?abs l?l?div qsort bsearch
    ato(?:i|l|ll|f) getenv getopt(?:_long)? optarg optind optopt opterr);
my $prints = join '|', qw(v?s?n?printf v?fprintf v?s?scanf puts putchar putc fputs fputc fwrite fflush fclose perror getchar
    fgets f?getc setv?buf stdin stdout stderr);
my $waits = join '|', qw(time clock clock_gettime gettimeofday difftime localtime gmtime nanosleep usleep sleep sched_yield
    sysconf getpid gethostname pthread_\w+ thrd_\w+ mtx_\w+ cnd_\w+);
my $compiler = join '|', qw(__errno_location __stack_chk_fail __assert_fail __ctype_\w+_loc _GLOBAL_OFFSET_TABLE_
    __[a-z]+[sdtxh][fic]\d?);
my $libraries = join '|', 'nccl\w+', 'cublas\w+', 'cuda(?!GraphDebugDotPrint)\w+', 'P?MPI_(?!File_|Comm_spawn|T_)\w+',
    'ompi_mpi_\w+';
my $harmless = qr/^(?:__isoc\d\d_)?(?:(?:$math)[fl]?|$computes|$prints|$waits|$compiler|$libraries)$/;

# What a file that is handed in calls, by its object, and no exercise needs; or ''. What else it defines than
# the exercise's functions becomes local, so that nobody takes it for the library's.
sub forbidden {
    my ($ex, $object, $harness, $check) = @_;
    my %there = map { $_ => 1 } symbols($check, '[A-TX-Z]'), grep { /^lesson_/ } symbols($harness, '[A-TX-Z]');
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

# --- Running -----------------------------------------------------------------------------

# Runs a command in a session of its own and stops all of it when it has used so many seconds of
# processor time (or six times as long has passed: a busy machine is no mistake), or its memory (MiB, 0:
# any). What it leaves running ends with it. Its exit code, and why it was stopped, or ''.
sub run_limited {
    my ($command, $dir, $out, $err, $seconds, $memory) = @_;
    adopt_orphans();
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        POSIX::setsid();
        chdir $dir or POSIX::_exit(126);
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $out or POSIX::_exit(126);
        open STDERR, $err eq $out ? '>>' : '>', $err or POSIX::_exit(126);
        { exec '/bin/sh', '-c', "ulimit -f 40000000; exec $command" }
        POSIX::_exit(127);
    }
    my ($begin, $look, $why, $code, $pause) = (time, $memory ? 0.2 : $seconds, '', 137, 0.005);
    while (!$why) {
        if (waitpid($pid, POSIX::WNOHANG()) == $pid) {
            $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
            last;
        }
        my $passed = time - $begin;
        if ($passed > $look) {
            $look = $passed + 0.2;
            my @all = descendants();
            $why = "it did not end within $seconds seconds"
                if $passed > 6 * $seconds || $passed > $seconds && processor_time(@all) > $seconds;
            $why = "it took more than $memory MiB of memory" if $memory && memory_of(@all) > $memory;
            $why = 'it printed more than 10 MB' if $memory && -s $out > 1e7;
        }
        sleep $pause;
        $pause *= 1.2 if $pause < 0.05;
    }
    while (waitpid(-1, POSIX::WNOHANG()) >= 0) {
        kill 'KILL', descendants();
        sleep 0.01;
    }
    return ($code, $why);
}

# Processes whose parents have ended become children of this one, so that none gets away (Linux:
# prctl(PR_SET_CHILD_SUBREAPER)).
sub adopt_orphans {
    my %prctl = (x86_64 => 157, aarch64 => 167, ppc64le => 171);
    my $number = $prctl{ (POSIX::uname())[4] } or return;
    syscall $number, 36, 1, 0, 0, 0;
}

# All processes that this one has started, and those that they have, from /proc.
sub descendants {
    my (%children, @found);
    for my $stat (glob '/proc/[0-9]*/stat') {
        my ($pid, $parent) = read_file($stat) =~ /^(\d+) \(.*\) \S+ (\d+)/s or next;
        push @{ $children{$parent} }, $pid;
    }
    my @todo = ($$);
    while (@todo) {
        my @next = @{ $children{ shift @todo } // [] };
        push @todo, @next;
        push @found, @next;
    }
    return @found;
}

# What processes, and those of theirs that have ended, have used, in seconds.
sub processor_time {
    my $ticks = 0;
    for (@_) {
        my @stat = split / /, read_file("/proc/$_/stat") =~ s/.*\) //sr;
        $ticks += $_ for grep { defined } @stat[11 .. 14];
    }
    return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# What processes have in memory, in MiB; what they share counts once.
sub memory_of {
    my $kib = 0;
    for (@_) {
        $kib += $1 if read_file("/proc/$_/smaps_rollup") =~ /^Pss: +(\d+)/m;
    }
    return $kib / 1024;
}

my $mpirun;
sub mpirun {
    $mpirun //= do {
        my $command = $ENV{MPIRUN} // 'mpirun';
        $command .= ' --oversubscribe' if `$command --version 2>&1` =~ /Open MPI|OpenRTE/;
        $command;
    };
    return $mpirun;
}

# How many GPUs there are; the CPU build has as many as one likes.
my $gpus;
sub gpus {
    return 1000 if $backend eq 'cpu';
    return scalar split /,/, $ENV{CUDA_VISIBLE_DEVICES} if $ENV{CUDA_VISIBLE_DEVICES};
    $gpus //= grep { /^GPU/ } `nvidia-smi -L 2>/dev/null`;
    return $gpus;
}

# --- Judging -----------------------------------------------------------------------------

# Whether the reader's file solves the exercise. Options: dir (where to build), all (all rank
# counts the task allows), counts (only these), seconds and memory (limits), quick (no proof), graded
# (it may call only what exercises need).
# Returns { solved, text }; text says what came and what was expected, or what one sees now.
sub judge {
    my ($ex, $file, %option) = @_;
    my $dir = $option{dir};
    make_path($dir);
    return failed("The file is empty, or not there. The task comes back with: make exercise N=$ex->{number} RESET=1", 'empty file')
        if read_file($file) !~ /\S/;
    return judge_answer($ex, $file, %option) if $ex->{ending} eq 'txt';
    return failed('This exercise is for the CPU build: add BACKEND=cpu', 'not on GPUs') if only_cpu($ex);
    return failed('Please leave #line out: the lines of your file are told by it.', 'forbidden')
        if read_file($file) =~ s/\\\n//gr =~ s{/\*.*?\*/}{}gsr =~ m{^\s*(?:\#|%:)\s*(?:line\b|\d)}m;
    my ($harness, $check) = build_checker($ex, $option{checker_dir} // $dir);
    my $main   = $ex->{setup} eq 'program' ? '-Dmain=exercise_main' : '';
    my $object = "$dir/yours.o";
    my $code   = quietly(lesson_header() . " $compile $main -c '$file' -o '$object'", "$dir/log", $option{memory});
    my $said   = read_file("$dir/log") =~ s/\Q${\ dirname($file)}\E\///gr;
    return failed("It does not compile:\n$said", 'does not compile') if $code != 0;
    return failed('Its object file is larger than 100 MB: does it have a large array with an initial value?', 'time or memory')
        if -s $object > 1e8;
    my $forbidden = $option{graded} ? forbidden($ex, $object, $harness, $check) : '';
    return failed("$forbidden\n", 'forbidden') if $forbidden;
    my $program = "$dir/program";
    $code = quietly("'$harness' '$object' '$check' $link -Wl,-z,noexecstack -o '$program'", "$dir/log");
    return failed("It does not link:\n" . read_file("$dir/log") . ($said =~ /warning/ ? "The compiler warns:\n$said" : ''), 'does not compile')
        if $code != 0;
    my ($times, @runs) = ('', runs($ex, %option));
    return failed("It needs more GPUs than there are here: make exercise N=$ex->{number} BACKEND=cpu", 'not on GPUs') if !@runs;
    for my $run (@runs) {
        my $result = one_run($ex, $file, $program, $run, %option);
        $times ||= $result->{text};
        next if $result->{solved};
        $result->{text} .= "\nThe compiler warns:\n$said" if $said =~ /warning/;
        return $result;
    }
    return { solved => 1, text => $times, warnings => $said };
}

# What came, and what kind of failure it is: one or two words, for the class's summary.
sub failed {
    my ($text, $kind) = @_;
    return { solved => 0, text => $text =~ s/\s+\z/\n/r, kind => $kind // 'wrong result' };
}

sub only_cpu { return ($_[0]{build} // '') eq 'cpu' && $backend ne 'cpu' }

# Whether an exercise can be tried with this build, on these GPUs.
sub can_run {
    my ($ex) = @_;
    return $ex->{ending} eq 'txt' || !only_cpu($ex) && runs($ex) > 0;
}

# What is run: { n, env, label }.
sub runs {
    my ($ex, %option) = @_;
    my @counts = $option{counts} ? @{ $option{counts} } : (@{ $ex->{counts} }, $option{all} ? @{ $ex->{also} // [] } : ());
    my @runs = map { { n => $_, env => {} } } @counts;
    for (@{ $ex->{run} }) {
        my ($n, @settings) = split;
        push @runs, { n => $n, env => { map { split /=/, $_, 2 } @settings } };
    }
    for (@runs) {
        my $env = $_->{env};
        $_->{label} = ($_->{n} == 1 ? '1 rank' : "$_->{n} ranks") . join '', map { ", $_=$env->{$_}" } sort keys %$env;
        $env->{NCCL_CPU_CLOCK} = $ex->{clock} if $ex->{clock} && $backend eq 'cpu';
        $env->{NCCL_CHECK_TIMEOUT} = 3 if $backend eq 'cpu'; # these programs are short
    }
    my $most = gpus();
    return grep { $_->{n} <= $most } @runs;
}

sub one_run {
    my ($ex, $file, $program, $run, %option) = @_;
    my $dir = $option{dir};
    unlink glob("'$dir'/verdict.*"), "$dir/run.json";
    my $token = md5_hex(read_some('/dev/urandom'));
    local %ENV = (%ENV, %{ $run->{env} }, %{ $option{env} // {} }, EXERCISE_VERDICT => $dir,
        EXERCISE_TOKEN => $token, NCCL_TIMELINE => "$dir/run.json");
    my $before = $backend eq 'cpu' ? '' : "'$top/check/nccl-check' ";
    my $seconds = $option{seconds} // $ex->{seconds} // ($backend eq 'cpu' ? 10 : 60);
    my ($code, $why) = run_limited(mpirun() . " -np $run->{n} $before'$program'", $dir,
        "$dir/out", "$dir/err", $seconds, $option{memory} // 0);
    my $on = "On $run->{label}";
    my ($out, $err) = (readable(read_file("$dir/out")), readable(read_file("$dir/err")));
    my $printed = $out eq '' ? '' : "\nYour program printed:\n" . first_lines($out, 20);
    return failed("$on: $why.\n$err$printed", 'time or memory') if $why;
    return failed("$on:\n$err$printed", $1) if $err =~ /NCCL CHECK: ([^:\n]+)/;
    my ($verdict, $reason) = verdict($dir, $token, $run->{n});
    if (!$verdict) {
        my $end = "it ended with exit code $code, before all was checked" . signal_of($code, $err);
        return failed("$on: $end.\n$err$printed", 'ended early');
    }
    return failed("$on$reason\n$err$printed") if $reason;
    return failed("$on: it ended with exit code $code.\n$err$printed", 'ended early') if $code != 0;
    my $calls = wrong_calls($ex, $dir, basename($file), $run->{n}, $verdict->{cases});
    return failed("$on: $calls\n", 'other calls') if $calls;
    return { solved => 1, text => ucfirst($verdict->{times} =~ s/.\K\z/./r) };
}

sub read_some {
    open my $in, '<', $_[0] or die "$_[0]: $!\n";
    read $in, my $bytes, 32;
    return $bytes;
}

sub signal_of {
    my ($code, $err) = @_;
    return ' (a segmentation fault: does the host use an address of the device, or a pointer that was never set?)' if $code == 139 || $err =~ /signal 11/;
    return '';
}

# What the ranks' files say, if each has one with the token: how many cases there were; and what
# failed first, as ", 5 elements:\n  rank 1: …".
sub verdict {
    my ($dir, $token, $n) = @_;
    my @ranks;
    for (glob "'$dir'/verdict.*") {
        my ($word, $rank, $cases, $failed, $where, @why) = split /\n/, read_file($_);
        next if ($word // '') ne $token;
        push @ranks, { rank => $rank, cases => $cases, failed => $failed, where => $where, why => join "\n", @why };
    }
    return if @ranks < $n;
    my ($first) = sort { $a->{failed} <=> $b->{failed} || $a->{rank} <=> $b->{rank} } grep { $_->{failed} >= 0 } @ranks;
    my ($most) = sort { $b <=> $a } map { $_->{cases} } @ranks;
    return ({ cases => $most || 1, times => $ranks[0]{why} }) if !$first;
    my $where = $first->{where} ? ", $first->{where}" : '';
    my $who = $first->{rank} >= 0 ? "rank $first->{rank}: " : '';
    return ({ cases => $most }, "$where:\n  $who$first->{why}");
}

# Compares the calls that the reader's file makes, as the timeline has them, with `calls`, `only`
# and `no`. What is wrong, or ''.
sub wrong_calls {
    my ($ex, $dir, $file, $n, $cases) = @_;
    return '' if !grep { defined $ex->{$_} } qw(calls only no);
    return 'the timeline with its calls is missing.' if !-s "$dir/run.json";
    my (%made, %slow, %line);
    # One event a line.
    for (split /\n/, read_file("$dir/run.json")) {
        my ($rank, $where, $name) = /"pid":(\d+),"tid":\d+,"cat":"(\w+)","name":"([^"]*)"/ or next;
        my ($line) = /"line":"(\Q$file\E:\d+)"/ or next;
        # A copy is known by the function that made it. ncclBcast is an ncclBroadcast, and
        # ncclAllReduceConfig an ncclAllReduce.
        my $call = (/"call":"([^"]*)"/ ? $1 : $name) =~ s/^ncclBcast/ncclBroadcast/r =~ s/^(nccl\w+)Config$/$1/r;
        # A call that took long is shown twice: on its stream, and on the host.
        ($where eq 'host' ? \%slow : \%made)->{$rank}{$call}++;
        $line{$call} //= $line;
    }
    for my $rank (0 .. $n - 1) {
        $made{$rank}{$_} //= $slow{$rank}{$_} for keys %{ $slow{$rank} // {} };
    }
    for (split ' ', $ex->{calls} // '') {
        my ($call, $how, $number) = /^(\w+)(?:(=|<=)(\d+))?$/ or die "$ex->{source}: calls $_\n";
        for my $rank (0 .. $n - 1) {
            my $has = ($made{$rank}{$call} // 0) / $cases;
            return "rank $rank does not call $call, and the task asks for it." if !$has && ($number // 1) && ($how // '=') eq '=';
            next if !$how || ($how eq '=' ? $has == $number : $has <= $number);
            my $times = sprintf '%.3g time%s', $has, $has == 1 ? '' : 's';
            my $most = $how eq '=' ? '' : 'at most ';
            return "rank $rank calls $call $times for each case; the task asks for $most$number.";
        }
    }
    my %allowed = map { $_ => 1 } split ' ', $ex->{only} // '';
    for my $call (sort keys %line) {
        return "your file calls $call at $line{$call}, and the task allows only " . join(', ', sort keys %allowed) . '.'
            if %allowed && $call =~ /^nccl(?!Comm|Group|GetUnique)/ && !$allowed{$call};
        return "your file calls $call at $line{$call}, and the task does without."
            if grep { $call eq $_ } split ' ', $ex->{no} // '';
    }
    return '';
}

# What a program has said, without what the launcher adds.
sub readable {
    my ($text) = @_;
    $text =~ s/[^\t\n\x20-\x7e\x80-\xff]//g;
    $text =~ s/^-{60,}\n(?:(?!-{60,}\n)[^\n]*\n)*?-{60,}\n//gm;
    $text =~ s/^(?:\[\S+:\d+\] |CPU build: |\d+ total processes |\d+ more process|Primary job |mpirun detected )[^\n]*\n//gm;
    $text =~ s{\b(?:harness|check-\d\d\.\d+)\.c:\d+}{the check of this exercise}g;
    $text =~ s/^\s*\n//gm;
    return $text;
}

sub first_lines {
    my ($text, $most) = @_;
    my @lines = split /^/, $text;
    return $text if @lines <= $most;
    return join('', @lines[0 .. $most - 1]) . '… ' . (@lines - $most) . " more lines\n";
}

# --- Answers to questions ----------------------------------------------------------------

# What stands after `answer:`, in the same line or a later one, or ''.
sub answer_of {
    my ($text) = @_;
    my ($answer) = $text =~ /^answer:\s*(.*?)[ \t\r]*$/m;
    return $answer // '';
}

# The numbers of an answer, with what their units are worth: [4, 'bytes', 1024] is 4 KiB.
sub numbers {
    my ($text) = @_;
    my %bytes   = ('' => 1, k => 1e3, m => 1e6, g => 1e9, t => 1e12, ki => 2**10, mi => 2**20, gi => 2**30, ti => 2**40);
    my %seconds = ('' => 1, m => 1e-3, u => 1e-6, n => 1e-9);
    my @values;
    $text = lc $text =~ s/\xc2\xb5|\xce\xbc/u/gr;
    while ($text =~ /(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:([kmgt]i?|)b(?:ytes?)?\b|([mun]?)s(?:ec(?:onds)?)?\b)?/g) {
        push @values, [$1, defined $2 ? ('bytes', $bytes{$2}) : defined $3 ? ('seconds', $seconds{$3}) : ('', 1)];
    }
    return @values;
}

# Whether an answer is the wanted one, whatever words stand around it. A number without a unit has the one
# that was asked for, or is of bytes. Where one is wanted, it may come after the way to it: 2 * 3 = 6.
sub same_answer {
    my ($given, $wanted, $within) = @_;
    my (@wanted, @given) = numbers($wanted);
    if (!@wanted) {
        @given = lc($given) =~ /\b(?:[a-z]|\Q$wanted\E)\b/gi;
        return @given == 1 && $given[0] eq lc $wanted;
    }
    $given =~ s/[a-z]+ *\d+ *[:=]//gi; # in "rank 3: 1" the answer is 1
    $given =~ s/.*=(?=.*\d)// if @wanted == 1;
    @given = numbers(@wanted == 1 ? $given =~ s/(?<=\d)[,_' ](?=\d{3}(?!\d))//gr : $given);
    return 0 if @given != @wanted;
    for (0 .. $#given) {
        my ($number, $kind, $factor) = @{ $given[$_] };
        my ($wants, $asked, $worth) = @{ $wanted[$_] };
        return 0 if $kind && $asked && $kind ne $asked;
        my @means = $kind && $asked ? $number * $factor : $kind eq 'bytes' ? $number * $factor : $number * $worth;
        push @means, $number if !$kind && $asked eq 'bytes';
        return 0 if !grep { abs($_ - $wants * $worth) <= abs($wants * $worth) * ($within + 1e-9) } @means;
    }
    return 1;
}

sub judge_answer {
    my ($ex, $file, %option) = @_;
    my $given = answer_of(read_file($file));
    return failed('There is no answer yet: write it after `answer:` in the file.', 'no answer') if $given eq '';
    my ($percent) = ($ex->{within} // '0') =~ /([\d.]+)/;
    if (same_answer($given, $ex->{answer}, $percent / 100)) {
        my $seen = $option{quick} ? '' : proof($ex, %option);
        return { solved => 1, text => $seen eq '' ? '' : "What a run says:\n$seen" };
    }
    for (@{ $ex->{wrong} }) {
        return failed("$given: $_->{says}") if same_answer($given, $_->{name}, $percent / 100);
    }
    my ($came, $asked) = map { scalar numbers($_) } $given, $ex->{answer};
    return failed("$given: This has $came numbers, and one is asked for. Write that one only, such as 2.5 (with a point).")
        if $asked == 1 && $came > 1;
    return failed("$given: No. " . ($ex->{otherwise} // 'The hints go step by step: HINT=1.'));
}

# What the exercise's own run prints, in which the answer is seen; '' where it has none.
sub proof {
    my ($ex, %option) = @_;
    my $dir = $option{dir};
    if ($ex->{check} ne '' && $backend eq 'cpu') {
        my ($harness, $check) = build_checker($ex, $dir);
        quietly("'$harness' '$check' $link -o '$dir/program'", "$dir/log") == 0 or die read_file("$dir/log");
        my ($run) = runs($ex, %option);
        local %ENV = (%ENV, %{ $run->{env} });
        run_limited(mpirun() . " -np $run->{n} '$dir/program'", $dir, "$dir/out", "$dir/err", 20, 0);
    } elsif ($ex->{proof} && $backend eq 'cpu') {
        my $command = $ex->{proof} =~ s/\bmpirun\b/mpirun()/er =~ s/\{(\S+)\}/lesson($1, $dir)/er;
        run_limited("/bin/sh -c " . quoted($command), $top, "$dir/out", "$dir/err", 30, 0);
    } else {
        return '';
    }
    return readable(read_file("$dir/out") . read_file("$dir/err"));
}

# A lesson's program, built in the folder.
sub lesson {
    my ($name, $dir) = @_;
    my $program = "$dir/" . basename($name);
    quietly("$compile '$top/$name.c' $link -o '$program'", "$dir/log") == 0 or die read_file("$dir/log");
    return quoted($program);
}

sub quoted { return "'" . $_[0] =~ s/'/'\\''/gr . "'" }

1;
