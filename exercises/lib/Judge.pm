# Whether what a reader has written solves an exercise, and what to tell them.
package Judge;
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use Source qw(read_file $top);
use Run qw(failed first_lines mpirun only_cpu readable run_limited runs $backend);
use Build qw(build_checker compile_yours link_program preprocess);
use Guard qw(forbidden_object forbidden_source lacking without_comments);
use Answer qw(judge_answer);
use Exporter qw(import);

our @EXPORT_OK = qw(judge);

# Whether the reader's file solves the exercise. Options: dir (where to build), all (all rank
# counts the task allows), counts (only these), seconds and memory (limits), quick (no proof), graded
# (it may call only what exercises need).
# Returns { solved, text }; text says what came and what was expected, or what one sees now.
sub judge {
    my ($ex, $file, %option) = @_;
    my $dir = $option{dir};
    make_path($dir);
    return failed('The file is in UTF-16, which the compiler does not read: save it as UTF-8, without or with a mark (BOM).', 'not readable')
        if read_file($file) =~ /\A(?:\xff\xfe|\xfe\xff)|\A.?\0/s;
    return failed("The file is empty, or not there. The task comes back with: make exercise N=$ex->{number} RESET=1", 'empty file')
        if read_file($file) !~ /\S/;
    return judge_answer($ex, $file, %option) if $ex->{ending} eq 'txt';
    return failed('This exercise is for the CPU build: add BACKEND=cpu', 'not on GPUs') if only_cpu($ex);
    return failed('Please leave #line out: the lines of your file are told by it.', 'forbidden')
        if without_comments(read_file($file)) =~ m{^\s*(?:\#|%:)\s*(?:line\b|\d)}m;
    my $refused = $option{graded} ? forbidden_source($file, preprocess($ex, $file, "$dir/preprocessed")) : '';
    return failed("$refused\n", 'forbidden') if $refused;
    my ($harness, $check) = build_checker($ex, $option{checker_dir} // $dir);
    my $object = "$dir/yours.o";
    my $code = compile_yours($ex, $file, $object, "$dir/log", $option{memory});
    my $said = without_folder($file, read_file("$dir/log"));
    return failed("It does not compile:\n$said", 'does not compile') if $code != 0;
    return failed('Its object file is larger than 100 MB: does it have a large array with an initial value?', 'time or memory')
        if -s $object > 1e8;
    my $lacks = lacking($ex, $object, $check);
    return failed($lacks, $lacks =~ /GiB/ ? 'time or memory' : 'function missing') if $lacks;
    $refused = $option{graded} ? forbidden_object($ex, $object, $check) : '';
    return failed("$refused\n", 'forbidden') if $refused;
    my $program = "$dir/program";
    $code = link_program($program, "$dir/log", $harness, $object, $check);
    return failed("It does not link:\n" . without_folder($file, read_file("$dir/log")) . ($said =~ /warning/ ? "The compiler warns:\n$said" : ''), 'does not compile')
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

# What the compiler says, with the file's name only.
sub without_folder {
    my ($file, $text) = @_;
    return $text =~ s/\Q${\ dirname($file)}\E\///gr;
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
    # What the check itself does wrong is no mistake of the answer's.
    $err =~ s/^NCCL CHECK: note: .* at the check of this exercise returned .*\n//gm;
    $err =~ s/^NCCL CHECK: note: (?!.*\Q${\ basename($file)}\E).*returned an error: .* at the check of this exercise.*\n//gm;
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
        next if $backend ne 'cpu' && $call !~ /^(?:nccl|cuda|cublas)/; # launches are seen on the CPU build only
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

1;
