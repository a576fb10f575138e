#!/usr/bin/env perl
# The checks of the CPU build: every program of check/wrong must be named, its repaired twin
# (compiled with -DFIXED) and every program of check/right must pass without a word, or with
# the notes that it expects.
#
#     tests/check/check.t [-v] [NAME...]     only these programs; -v shows what they print
#
# A program says in comments what is expected of it:
#     // expect: TEXT      a line of stderr contains TEXT, which may go on in further lines of
#                          comment, indented; `expect 3:` and `expect 4+:` are for so many ranks
#     // rank: 1           where the mistake is; tests/check/README.md says which ranks that are
#     // exit: 0           exit code of the wrong program, otherwise 1
#     // ranks: 3 4 8      where 2 ranks cannot express it
#     // warn: 0           its exit code with NCCL_CPU_CHECK=warn, with the same reports
#     // off: 0            its exit code with NCCL_CPU_CHECK=off, without any
#     // timeout: 1        NCCL_CPU_TIMEOUT of the wrong or right program, where nothing else can decide
# In TEXT,
#     ...                  is any text
#     @host @any @same     are a host name, a number, the same number as the first @any
#     @n @more @last       are the number of ranks, one more, one less
#     @all @others         are "ranks 0, 1, 2", "ranks 0, 2 have" (all but rank 1)
#     @tag                 is file:line of the line that ends with `// @tag`, or that follows
#                          a line with nothing else
# Each runs once, on 2 ranks or on as many as it needs. Of the repaired twins every eighth runs, the same ones each
# time. RANKS="2 3" runs all on these, and all twins; ALL=yes all twins. Every run has 300 seconds.
# JOBS=1 runs one at a time. FORM=library runs them under nccl-check, over the stand-in without checks.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use Time::HiRes qw(time);
use lib "$Bin/..";
use Programs qw(cpu_flags done_testing in_parallel library_flags read_file run $before $mpicc $top);

my $verbose = @ARGV && $ARGV[0] eq '-v' && shift @ARGV;
my $asked   = delete $ENV{RANKS};
my @ranks   = split ' ', $asked // '2 3 4 8';
my $jobs    = delete $ENV{JOBS} // 3;
my $library = (delete $ENV{FORM} // '') eq 'library';

my %tags_of_header;

# What the comments of one program say: its tests, and the lines its tags stand for.
sub read_program {
    my ($path) = @_;
    my %program = (path => $path, name => basename($path, '.c'), file => basename($path), exit => 1, expect => []);
    $program{wrong} = dirname($path) =~ m{/wrong$} ? 1 : 0;
    my @wanted = @ranks;
    my $number = 0;
    my $open   = 0;
    for (split /\n/, read_file($path)) {
        $number++;
        $program{sleeps} = 1 if /\bsleep\(/;
        # A formatter that joins or breaks lines must not make an expectation shorter in silence.
        die "$path:$number: the end of an expectation, or text?\n"
            if $open && m{^// ?\S} && !m{^// (?:expect|exit|warn|off|timeout|ranks)\b} || m{^//.+\S.*\bexpect[\d+ ]*:};
        if (m{^// expect(?: ([\d+ ]+))?: (.+)}) {
            push @{$program{expect}}, [$1 // '2+', $2];
            $open = 1;
            next;
        } elsif ($open && m{^//\s{3,}(\S.*)}) {
            $program{expect}[-1][1] .= " $1";
            next;
        } elsif (m{^// exit: (\d+)}) {
            $program{exit} = $1;
        } elsif (m{^// (warn|off|timeout): (\d+)}) {
            $program{$1} = $2;
        } elsif (m{^// rank: (all|[\d ]+)$}) {
            $program{rank} = $1;
        } elsif (m{^// ranks: (.+)}) {
            my %can = map { $_ => 1 } split ' ', $1;
            @wanted = grep { $can{$_} } @wanted;
        } elsif (m{^\s*// @(\w+)$}) {
            $program{tag}{$1} = $number + 1;
        } elsif (m{// @(\w+)$}) {
            $program{tag}{$1} = $number;
        }
        $open = 0;
    }
    die "$path: no line `// rank:` says where the mistake is\n" if $program{wrong} && !defined $program{rank};
    $_ = "$program{file}:$_" for values %{$program{tag}};
    @wanted = @wanted[0 .. 0] if @wanted && !defined $asked;
    my $repaired = defined $asked || @ARGV || $ENV{ALL} || unpack('%32C*', $program{name}) % 8 == 0;
    for my $n (@wanted) {
        push @{$program{tests}}, [$n, $_] for !$program{wrong} ? 'right' : $repaired ? ('wrong', 'fixed') : 'wrong';
    }
    push @{$program{tests}}, [$wanted[0], $_] for grep { @wanted && defined $program{$_} } qw(warn off);
    return \%program;
}

# The pattern that an expectation stands for, or undef if it is not meant for n ranks.
sub pattern {
    my ($program, $n, $expect) = @_;
    my ($when, $text) = @$expect;
    my $meant = grep { /^(\d+)(\+?)$/ && ($2 ? $n >= $1 : $n == $1) } split ' ', $when;
    return if !$meant;
    my @but_1 = grep { $_ != 1 } 0 .. $n - 1;
    my %word = (
        host => '[\w.-]+', any => '(\d+)', same => '\g1', n => $n, more => $n + 1, last => $n - 1,
        all => 'ranks ' . join(', ', 0 .. $n - 1),
        others => @but_1 == 1 ? 'rank 0 has' : 'ranks ' . join(', ', @but_1) . ' have',
    );
    my $pattern = '';
    for my $part (split /(\.\.\.|@\w+)/, $text) {
        if ($part eq '...') {
            $pattern .= '.*';
        } elsif ($part =~ /^@(\w+)/ && $word{$1}) {
            $pattern .= $word{$1};
        } elsif ($part =~ /^@(\w+)/) {
            my $place = $program->{tag}{$1} // $tags_of_header{$1}
                // die "$program->{path}: nothing is tagged \@$1\n";
            $pattern .= quotemeta($place) . '(?!\d)';
        } else {
            $pattern .= quotemeta $part;
        }
    }
    return qr/$pattern/;
}

# What is wrong with one run: an empty list if nothing is.
sub problems {
    my ($program, $n, $variant, $code, $seconds, $stderr) = @_;
    return sprintf 'still running after %.0f s', $seconds if $code == 124 || $code == 137;
    my $exit = $variant eq 'wrong' ? $program->{exit} : $program->{$variant} // 0;
    my @problems = $code == $exit ? () : "exit code $code, expected $exit";
    my $reports = () = $stderr =~ /NCCL CHECK:/g;
    my $notes = $variant eq 'right' && @{$program->{expect}}; # of calls whose errors it handles
    if ($variant ne 'wrong' && $variant ne 'warn' && !$notes) {
        my $silent = $variant eq 'off' ? $reports == 0 : $stderr eq '';
        return @problems, $silent ? () : 'stderr is not empty';
    }
    my $wanted = grep { $_->[1] =~ /^NCCL CHECK:/ } @{$program->{expect}};
    push @problems, "$reports reports, expected $wanted" if $variant ne 'warn' && $reports != $wanted;
    my @lines = split /\n/, $stderr;
    for my $expect (@{$program->{expect}}) {
        my $pattern = pattern($program, $n, $expect) // next;
        next if grep { /$pattern/ } @lines;
        push @problems, 'no line like ' . pattern_text($program, $n, $expect->[1]);
    }
    return @problems;
}

sub pattern_text {
    my ($program, $n, $text) = @_;
    $text =~ s{@(\w+)}{$program->{tag}{$1} // $tags_of_header{$1} // "\@$1"}ge;
    return $text;
}

my $flags = $library ? library_flags() : cpu_flags();
$before = "'$top/check/nccl-check'" if $library;
my $dir   = tempdir('check-XXXXXX', TMPDIR => 1, CLEANUP => 1);

# A report must name the line also where the compiler has rearranged everything; for the right
# ones, of which there is nothing to name, the quickest is good enough.
my %optimized = (wrong => '-O2', right => '-O0', fixed => '-O0');

# All programs have the same headers: gcc reads them once (GCC's manual, "Using Precompiled Headers").
# It looks for what it has read beside check.h, so the programs lie in folders of the test's own: links to
# files, because a program in a linked folder would find the check.h beside that folder.
mkdir "$dir/$_" for qw(right wrong);
symlink $_, $dir . s{^\Q$Bin\E}{}r or die "$_: $!\n"
    for "$Bin/check.h", glob "'$Bin'/right/* '$Bin'/wrong/*";
if (`$mpicc --version` !~ /clang/) {
    my $compile = join ' ', grep { !m{^'?/|^-[lLW]} } split ' ', $flags;
    mkdir "$dir/check.h.gch";
    system "$mpicc $_ $compile -x c-header -c '$dir/check.h' -o '$dir/check.h.gch/$_'" for qw(-O2 -O0);
}

# Compiles and runs one program and writes its TAP lines, without numbers, to a file.
sub check_program {
    my ($program, $file) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    my %built;
    for my $variant (grep { my $it = $_; grep { $_->[1] eq $it } @{$program->{tests}} } qw(wrong fixed right)) {
        my $binary = "$dir/$program->{name}-$variant";
        my $define = $variant eq 'fixed' ? '-DFIXED' : '';
        my $source = "$dir/" . ($program->{wrong} ? 'wrong' : 'right') . "/$program->{file}";
        my $said = `$mpicc $optimized{$variant} $define '$source' $flags -o '$binary' 2>&1`;
        $built{$variant} = $? == 0 ? $binary : undef;
        print $out map { "#   $_\n" } grep { defined } (split /\n/, $said)[0 .. 9] if $? != 0;
    }
    for my $test (@{$program->{tests}}) {
        my ($n, $variant) = @$test;
        my $setting = $variant =~ /^(warn|off)$/;
        my $binary = $built{$setting ? 'wrong' : $variant};
        local %ENV = (%ENV, $setting ? (NCCL_CPU_CHECK => $variant) : (),
            $variant =~ /^(wrong|right)$/ && $program->{timeout} ? (NCCL_CPU_TIMEOUT => $program->{timeout}) : ());
        my @problems = 'does not compile';
        my ($stderr, $seconds) = ('', 0);
        if ($binary) {
            my $begin = time;
            (my $code, undef, $stderr) = run($binary, $n);
            $seconds = time - $begin;
            @problems = problems($program, $n, $variant, $code, $seconds, $stderr);
        }
        printf $out "%s %s: %s, %d ranks (%.1f s)\n", @problems ? 'not ok' : 'ok',
            $program->{name}, $variant, $n, $seconds;
        print $out map { "#   $_\n" } @problems;
        print $out map { "#     $_\n" } split /\n/, $stderr if @problems || $verbose;
    }
    unlink map { ($_, "$_.out", "$_.err") } grep { defined } values %built;
    close $out;
}

%tags_of_header = %{read_program("$Bin/check.h")->{tag}};
my @programs = map { read_program($_) } sort glob "'$Bin'/wrong/*.c '$Bin'/right/*.c";
if (@ARGV) {
    my %wanted = map { basename($_, '.c') => 1 } @ARGV;
    @programs = grep { $wanted{$_->{name}} } @programs;
}
@programs = grep { $_->{tests} } @programs; # that so many ranks can express
# Those that sleep start first: the others run meanwhile.
@programs = ((grep { $_->{sleeps} } @programs), (grep { !$_->{sleeps} } @programs));
in_parallel($jobs, $dir, \&check_program, @programs);
done_testing();
