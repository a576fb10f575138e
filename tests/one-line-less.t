#!/usr/bin/env perl
# Every lesson with one statement removed: each that calls MPI, CUDA or NCCL in turn. Where the
# rest still compiles, it must end by itself, and either be right all the same or say what is
# wrong: no hang, no bare crash, no wrong result with exit code 0.
#
#     tests/one-line-less.t [-v] [TEXT...]   only lesson.c:LINE that contain a TEXT; -v shows
#                                            what each variant prints
#
# Runs with 3 ranks, and every third variant with 2 as well. RANKS="4" chooses others, JOBS=1
# runs one at a time.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use POSIX ();
use Time::HiRes qw(time);

my $verbose = @ARGV && $ARGV[0] eq '-v' && shift @ARGV;
my $top     = dirname(dirname(abs_path($0)));
my $jobs    = $ENV{JOBS} // 2;
my @ranks   = split ' ', $ENV{RANKS} // '';
my $limit   = 15;

delete @ENV{grep { /^(NCCL_|CPU_DEVICES$|CUDA_VISIBLE_DEVICES$|RANKS$|JOBS$)/ } keys %ENV};
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)};
$ENV{OMPI_MCA_mpi_yield_when_idle}   = 1;
$ENV{OMPI_ALLOW_RUN_AS_ROOT}         = 1;
$ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} = 1;
$ENV{LC_ALL}                         = 'C';

my $mpicc  = $ENV{MPICC} // 'mpicc';
my $mpirun = $ENV{MPIRUN} // 'mpirun';
$mpirun .= ' --oversubscribe' if `$mpirun --version 2>&1` =~ /Open MPI|OpenRTE/;

sub read_file {
    my ($name) = @_;
    open my $in, '<', $name or return '';
    local $/;
    return <$in> // '';
}

# The statements of a program that call MPI, CUDA or NCCL: first line, last line, text. A
# statement is a line, or as many as it takes to close its parentheses.
sub statements {
    my ($source) = @_;
    my @lines = split /\n/, $source;
    my @found;
    my $comment = 0;
    for (my $i = 0; $i < @lines; $i++) {
        my ($first, $depth, $text) = ($i, 0, '');
        while (1) {
            my $code = $lines[$i] =~ s{//.*}{}r =~ s{/\*.*?\*/}{}gr =~ s/"(?:\\.|[^"])*"/""/gr;
            $code = '' if $comment && $code !~ m{\*/};
            $comment = $code =~ m{/\*} || $comment && $code !~ m{\*/};
            $code =~ s{/\*.*|.*\*/}{};
            $depth += ($code =~ tr/(//) - ($code =~ tr/)//);
            $text .= ' ' . $code =~ s/^\s+|\s+$//gr;
            last if $depth <= 0 || $i == $#lines;
            $i++;
        }
        next if $text !~ /\b(?:MPI_|cuda|nccl|cublas)\w+\s*\(/;
        push @found, {first => $first, last => $i, text => $text =~ s/^ //r};
    }
    return @found;
}

# What a run said, without what mpirun says of any process that ends early. What it says of a
# missing MPI_Finalize is to the point.
sub own_words {
    my ($stderr) = @_;
    my $to_the_point = $stderr =~ /exited without calling "finalize"/;
    $stderr =~ s/^-{20,}\n.*?^-{20,}\n//gms if !$to_the_point;
    $stderr =~ s/^\[[\w.-]+:\d+\] (?:\*\*\* (?:Process received|Signal|End of error)|Signal|Failing|\[ ?\d+\]).*\n//gm;
    $stderr =~ s/^\[[\w.-]+:\d+\] \d+ more processes? .*\n|^\[[\w.-]+:\d+\] Set MCA .*\n//gm;
    $stderr =~ s/^\s+//;
    return $stderr;
}

# What is wrong with the end of one run; an empty string if it is right or named.
sub problem {
    my ($code, $stdout, $stderr, $expected, $warned) = @_;
    return "still running after $limit s" if $code == 124 || $code == 137;
    my $said = own_words($stderr);
    if ($code != 0) {
        return '' if $said ne '' || $stdout =~ /^FAILED/m;
        # A crash for want of a value: the compiler has named the variable and the line.
        return '' if $warned && $code > 128;
        return "exit code $code and no message";
    }
    my ($verdict) = $stdout =~ /^(.*)\n?\z/m;
    $verdict = (split /\n/, $stdout)[-1] // '';
    return '' if $verdict eq $expected;
    return '' if $said =~ /^NCCL CHECK:/m;
    return "exit code 0, and the last line is \"$verdict\", not \"$expected\"";
}

sub run {
    my ($binary, $n) = @_;
    system "timeout -k 2 $limit $mpirun -n $n '$binary' </dev/null "
        . ">'$binary.out' 2>'$binary.err'";
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    return ($code, read_file("$binary.out"), read_file("$binary.err"));
}

my $dir   = tempdir('one-line-less-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $flags = `make -s --no-print-directory -C '$top' cpu-flags`;
if ($? != 0 || $flags !~ /-I/) {
    print "1..1\nnot ok 1 - make cpu-flags\n";
    exit 1;
}
chomp $flags;

sub compile {
    my ($source, $binary) = @_;
    my $said = `$mpicc -std=c11 -O2 -Wall -Wextra -I'$top/common' '$source' $flags -o '$binary' 2>&1`;
    return ($? == 0, $said =~ /used uninitialized/ ? 1 : 0);
}

# Compiles and runs one variant; its TAP lines, without numbers, go to a file.
sub check_variant {
    my ($variant, $file) = @_;
    my $base = "$dir/$variant->{id}";
    mkdir $base;
    my $source = "$base/" . basename($variant->{path});
    open my $out, '>', $source or die "$source: $!\n";
    my @lines = split /\n/, $variant->{source};
    # An empty line in place of each removed one, so that messages keep the line numbers.
    @lines[$variant->{first} .. $variant->{last}] = ('') x ($variant->{last} - $variant->{first} + 1);
    print $out map { "$_\n" } @lines;
    close $out;

    open my $tap, '>', $file or die "$file: $!\n";
    my $what = "$variant->{where} without $variant->{text}";
    my ($compiles, $warned) = compile($source, "$base/variant");
    if (!$compiles) {
        print $tap "ok $what # SKIP does not compile\n";
        close $tap;
        return;
    }
    for my $n (@{$variant->{ranks}}) {
        my $begin = time;
        my ($code, $stdout, $stderr) = run("$base/variant", $n);
        my $problem = problem($code, $stdout, $stderr, $variant->{expected}{$n}, $warned);
        my $said = own_words($stderr);
        my $kind = $said =~ /NCCL CHECK: ([\w ]+)/ ? $1 : $code == 0 ? 'right'
            : $said eq '' && $stdout !~ /^FAILED/m ? 'the compiler warned' : 'said';
        printf $tap "%s %s, %d ranks: %s (%.1f s)\n", $problem ? 'not ok' : 'ok', $what, $n,
            $problem || $kind, time - $begin;
        print $tap map { "#   $_\n" } split /\n/, "$stdout$stderr" if $problem || $verbose;
    }
    close $tap;
}

my @variants;
my ($number, $failed) = (0, 0);
$| = 1;
for my $path (sort glob "'$top'/[0-9][0-9]-*/*.c") {
    my $source = read_file($path);
    my $lesson = basename(dirname $path) . '/' . basename $path;
    my @found = statements($source);
    for (@found) {
        $_->{where} = "$lesson:" . ($_->{first} + 1);
    }
    if (@ARGV) {
        @found = grep { my $where = $_->{where}; grep { index($where, $_) >= 0 } @ARGV } @found;
    }
    next if !@found;
    my $whole = "$dir/whole-" . basename($path, '.c');
    my %expected;
    my ($compiles) = compile($path, $whole);
    if (!$compiles) {
        $number++;
        $failed++;
        print "not ok $number - $lesson compiles\n";
        next;
    }
    for my $n (@ranks ? @ranks : (2, 3)) {
        my ($code, $stdout, $stderr) = run($whole, $n);
        $expected{$n} = (split /\n/, $stdout)[-1] // '';
        my $bad = $code != 0 || $stderr ne '';
        $number++;
        $failed++ if $bad;
        print $bad ? 'not ok' : 'ok', " $number - $lesson, $n ranks: as it is\n";
        print map { "#   $_\n" } split /\n/, $stderr if $bad;
    }
    for my $found (@found) {
        push @variants, {%$found, id => scalar @variants, path => $path, source => $source,
            expected => \%expected,
            ranks => @ranks ? \@ranks : @variants % 3 == 0 ? [2, 3] : [3]};
    }
}

my (%running, %done);
my ($started, $printed) = (0, 0);
while ($printed < @variants) {
    while ($started < @variants && keys %running < $jobs) {
        my $pid = fork // die "fork: $!\n";
        if ($pid == 0) {
            eval { check_variant($variants[$started], "$dir/$started.tap"); 1 } or print "# $@";
            POSIX::_exit(0);
        }
        $running{$pid} = $started++;
    }
    my $pid = waitpid -1, 0;
    $done{delete $running{$pid}} = 1 if defined $running{$pid};
    while ($done{$printed}) {
        my $lines = read_file("$dir/$printed.tap");
        for (split /\n/, $lines || "not ok $variants[$printed]{where}: the test broke off") {
            if (s/^(not )?ok //) {
                $number++;
                $failed++ if $1;
                print $1 // '', "ok $number - $_\n";
            } else {
                print "$_\n";
            }
        }
        $printed++;
    }
}
print "1..$number\n";
exit($failed ? 1 : 0);
