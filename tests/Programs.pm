# What tests in Perl share: an environment without the caller's settings, the reading of files,
# and points that say why they fail. And programs built for the CPU build, run under a time limit,
# several at once, and their points in order.
package Programs;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use POSIX ();
use Test::More ();

our @EXPORT_OK = qw(cpu_flags done_testing in_parallel library_flags ok read_file run write_file $before $limit $mpicc $top);

$| = 1;

our $limit  = 300; # seconds a run: only what hangs takes them, on however busy a machine
our $before = ''; # a command that starts the program
our $top   = dirname(dirname(abs_path(__FILE__)));

# What the programs may see of the caller's settings would change what they print. On GPUs they are the machine's:
# NCCL_NVLS_ENABLE=0 may be what keeps it alive.
delete @ENV{grep { /^(NCCL_|CPU_(?:DEVICES|HOSTS)$|CUDA_VISIBLE_DEVICES$)/ } keys %ENV} if ($ENV{BACKEND} // '') ne 'cuda';
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)};
# Open MPI's settings, for one machine.
/^export (\w+)=(\S+)/ and $ENV{$1} = $2 for split /\n/, read_file("$top/common/one-machine.sh");
$ENV{LC_ALL} = 'C';

our $mpicc = $ENV{MPICC} // 'mpicc';
my $mpirun = $ENV{MPIRUN} // 'mpirun';
$mpirun .= ' --oversubscribe' if `$mpirun --version 2>&1` =~ /Open MPI|OpenRTE/;

# A file's bytes, or with a layer such as ':encoding(UTF-8)' its characters; '' if there is none.
sub read_file {
    my ($name, $layer) = @_;
    open my $in, '<' . ($layer // ''), $name or return '';
    local $/;
    return <$in> // '';
}

sub write_file {
    my ($name, $text) = @_;
    open my $out, '>', $name or die "$name: $!\n";
    print $out $text;
    close $out;
}

# A point; where it is not right, with reasons.
sub ok($$;@) {
    my ($right, $name, @why) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    Test::More::ok($right, $name) or Test::More::diag(join "\n", grep { defined } @why);
    return $right;
}

*done_testing = \&Test::More::done_testing;

# The flags that build a program for the CPU build; ends the test if there are none.
sub cpu_flags {
    my $flags = `make -s --no-print-directory -C '$top' cpu-flags`;
    die "make cpu-flags fails\n" if $? != 0 || $flags !~ /-I/;
    chomp $flags;
    return $flags;
}

# The same for the stand-in as a library without checks, which nccl-check brings in.
sub library_flags {
    system("make -s --no-print-directory -C '$top' BACKEND=cpu cpu-forms >&2") == 0 or die "make cpu-forms fails\n";
    return "-g -I'$top/cpu/include' -I'$top/cpu/include/absent' -L'$top/build/cpu' -lnccl-cpu -Wl,-rpath,'$top/build/cpu'"
        . ' -lm -pthread -fno-optimize-sibling-calls'
        . (`$mpicc --version` =~ /clang/ ? '' : ' -fno-crossjumping');
}

# Runs a program on n ranks, with options or without them: exit code (124 and 137: stopped by
# the limit), stdout, stderr.
sub run {
    my ($binary, $n, $options) = @_;
    $options //= '';
    system "timeout -k 2 $limit $mpirun -n $n $before '$binary' $options </dev/null "
        . ">'$binary.out' 2>'$binary.err'";
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    return ($code, read_file("$binary.out"), read_file("$binary.err"));
}

# Calls check(item, file) for each item in a process of its own, so many at a time. It writes
# TAP lines without numbers to the file, which become this test's points in the order of the items.
sub in_parallel {
    my ($jobs, $dir, $check, @items) = @_;
    my (%running, %done);
    my ($started, $printed) = (0, 0);
    while ($printed < @items) {
        while ($started < @items && keys %running < $jobs) {
            my $pid = fork // die "fork: $!\n";
            if ($pid == 0) {
                eval { $check->($items[$started], "$dir/$started.tap"); POSIX::_exit(0) };
                print "# $@";
                STDOUT->flush;
                POSIX::_exit(1);
            }
            $running{$pid} = $started++;
        }
        my $pid = waitpid -1, 0;
        $done{delete $running{$pid}} = $? == 0 ? 'well' : 'broke off' if defined $running{$pid};
        while ($done{$printed}) {
            my $lines = -e "$dir/$printed.tap" ? read_file("$dir/$printed.tap") : '';
            $lines .= "not ok $items[$printed]{name}: the test broke off\n" if $lines eq '' || $done{$printed} ne 'well';
            for (split /\n/, $lines) {
                if (/^ok (.*) # SKIP (.*)/) {
                    Test::More->builder->skip("$1: $2");
                } elsif (/^(not )?ok (.*)/) {
                    Test::More::ok(!$1, $2);
                } else {
                    print "$_\n";
                }
            }
            $printed++;
        }
    }
}

1;
