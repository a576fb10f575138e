# Running a program on some ranks, under limits: nothing that it starts outlives it.
package Run;
use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(sleep time);
use Source qw(read_file $top);
use Exporter qw(import);

our @EXPORT_OK = qw(can_run failed first_lines mpirun only_cpu readable run_limited runs $backend);

our $backend = $ENV{EXERCISE_BACKEND} || 'cpu';

# Open MPI's settings for one machine, where the caller has no others; on GPUs it looks for the machine's own paths.
for (split /\n/, read_file("$top/common/one-machine.sh")) {
    my ($name, $value) = /^export (\w+)=(\S+)/ or next;
    $ENV{$name} //= $value if $backend eq 'cpu' || $name !~ /HWLOC_|_pml$|_gds$/;
}
# What the caller has set for other programs is not for these.
delete @ENV{grep { /^(NCCL_(CHECK|CPU|TIMELINE)|CPU_(DEVICES|HOSTS)$)/ } keys %ENV};

# Runs a command in a session of its own and stops all of it when it has used so many seconds of
# processor time, or when so many have passed and for two more nothing of it has wanted a processor, or its memory
# (MiB, 0: any). After six times as long it is stopped in any case: a busy machine is no mistake. What it leaves
# running ends with it. Its exit code, and why it was stopped, or ''.
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
    my ($begin, $look, $why, $code, $pause, $asleep) = (time, $memory ? 0.2 : $seconds, '', 137, 0.005, 0);
    while (!$why) {
        if (waitpid($pid, POSIX::WNOHANG()) == $pid) {
            $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
            last;
        }
        my $passed = time - $begin;
        if ($passed > $look) {
            $look = $passed + 0.2;
            my @all = descendants();
            my $idle = $passed > $seconds && !grep { runs_now($_) } @all;
            $asleep = $idle ? $asleep + 1 : 0;
            $why = $passed > $seconds && processor_time(@all) > $seconds ? "it did not end within $seconds seconds of processor time"
                : $asleep > 9 ? sprintf 'it did not end within %d seconds, and all of it sleeps or waits', $passed
                : $passed > 6 * $seconds ? sprintf 'it did not end within %d seconds', $passed : '';
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

# Whether a thread of a process runs, or waits for a processor or a disk.
sub runs_now {
    my ($pid) = @_;
    return scalar grep { read_file($_) =~ /^\d+ \(.*\) [RD]/s } glob "/proc/$pid/task/*/stat";
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

# What came, and what kind of failure it is: one or two words, for the class's summary.
sub failed {
    my ($text, $kind) = @_;
    return { solved => 0, text => $text =~ s/\s+\z/\n/r, kind => $kind // 'wrong result' };
}

# What a program has said, without what the launcher adds.
sub readable {
    my ($text) = @_;
    $text =~ s/[^\t\n\x20-\x7e\x80-\xff]//g;
    $text =~ s/^-{60,}\n(?:(?!-{60,}\n)[^\n]*\n)*?-{60,}\n//gm;
    $text =~ s/^(?:\[\S+:\d+\] |CPU build: (?!kernel )|\d+ total processes |\d+ more process|Primary job |mpirun detected )[^\n]*\n//gm;
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

1;
