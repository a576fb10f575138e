#!/usr/bin/env perl
# Timelines (NCCL_TIMELINE): the file is one of Chrome's trace event format, what it says agrees
# with what the program measures and with what its streams and events put in order, and nothing
# of it gets into the way of a program, whatever its end. Prints TAP.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use JSON::PP ();
use lib "$Bin/..";
use Programs qw(cpu_flags done_testing library_flags ok read_file run write_file $before $mpicc $top);

my $dir    = tempdir('timeline-XXXXXX', TMPDIR => 1, CLEANUP => 1);

sub build {
    my ($source, $name, $flags) = @_;
    system("$mpicc -g '$source' $flags -o '$dir/$name'") == 0 or die "$source: no program\n";
    return "$dir/$name";
}

# Runs it with a timeline; exit code, stdout, stderr, and what the file says (undef: no file, or
# none in JSON).
sub record {
    my ($program, $n, $options, %settings) = @_;
    my $file = $settings{NCCL_TIMELINE} // "$dir/run.json";
    unlink $file;
    local %ENV = (%ENV, NCCL_TIMELINE => $file, %settings);
    my ($code, $out, $err) = run($program, $n, $options);
    my $all = -f $file ? eval { JSON::PP->new->utf8->decode(read_file($file)) } : undef;
    return ($code, $out, $err, $all);
}

# Nanoseconds.
sub ns { return sprintf '%.0f', $_[0] * 1000 }

# The operations of one track, or all whose name fits, in order.
sub events {
    my ($all, $rank, $name, $tid) = @_;
    my @found = sort { $a->{ts} <=> $b->{ts} }
        grep { $_->{ph} eq 'X' && $_->{pid} == $rank && (!$tid || $_->{tid} == $tid)
               && $_->{name} =~ /^(?:$name)$/ } @{ $all->{traceEvents} };
    return @found;
}

# The track of a name.
sub track {
    my ($all, $rank, $name) = @_;
    my ($found) = grep { $_->{ph} eq 'M' && $_->{name} eq 'thread_name' && $_->{pid} == $rank
                         && $_->{args}{name} eq $name } @{ $all->{traceEvents} };
    return $found ? $found->{tid} : -1;
}

# What is wrong with a file of n ranks; '' if nothing is.
sub wrong {
    my ($all, $n) = @_;
    return 'no file, or not JSON' if !$all;
    return 'no object with traceEvents'
        if ref $all ne 'HASH' || ref $all->{traceEvents} ne 'ARRAY' || $all->{displayTimeUnit} ne 'ms';
    my (%process, %thread, %by_track, $first);
    for my $event (@{ $all->{traceEvents} }) {
        my ($ph, $pid, $tid, $name) = @$event{qw(ph pid tid name)};
        return 'an event without ph, pid, tid or name' if grep { !defined } $ph, $pid, $tid, $name;
        return "rank $pid" if $pid !~ /^\d+$/ || $pid >= $n;
        if ($ph eq 'M') {
            $process{$pid} = $event->{args}{name} if $name eq 'process_name';
            $thread{"$pid $tid"} = $event->{args}{name} if $name eq 'thread_name';
            next;
        }
        return "a phase $ph" if $ph ne 'X';
        for (qw(ts dur)) {
            return "$name: $_ is no number" if ($event->{$_} // '') !~ /^\d+(?:\.\d+)?$/;
        }
        $first = $event->{ts} if !defined $first || $event->{ts} < $first;
        push @{ $by_track{"$pid $tid"} }, $event;
    }
    return "begins at $first" if $first != 0;
    for my $rank (0 .. $n - 1) {
        return "rank $rank is not named" if ($process{$rank} // '') !~ /^rank $rank on .+, device \d+$/;
        return "rank $rank has no host" if ($thread{"$rank 1"} // '') ne 'host';
    }
    for my $track (sort keys %by_track) {
        return "track $track is not named" if !$thread{$track};
        my ($end, $last, $group) = (0, '', 0);
        for my $event (sort { $a->{ts} <=> $b->{ts} || $a->{dur} <=> $b->{dur} } @{ $by_track{$track} }) {
            my $same = $group && ($event->{args}{group} // 0) == $group;
            return "$track: $event->{name} begins before the end of $last"
                if !$same && ns($event->{ts}) < $end;
            $end   = ns($event->{ts}) + ns($event->{dur});
            $last  = $event->{name};
            $group = $event->{args}{group} // 0;
        }
    }
    return '';
}

# The line of work.c that has this text, the first after another one.
my @source = split /\n/, read_file("$Bin/timeline/work.c");

sub line {
    my ($text, $after) = @_;
    my $found = !defined $after;
    for my $i (0 .. $#source) {
        return 'work.c:' . ($i + 1) if $found && index($source[$i], $text) >= 0;
        $found ||= index($source[$i], $after) >= 0;
    }
    die "work.c has no $text\n";
}

# --- What work.c does, on so many ranks ------------------------------------------------

# The two directions between a program's numbers and the file's: of a stream that is busy all
# the time, the parts are together what lies between two events round them.
sub check_times {
    my ($all, $out, $n, $form) = @_;
    my @why;
    for my $rank (0 .. $n - 1) {
        my ($ms) = $out =~ /^rank $rank: ([\d.]+) ms$/m or push @why, "rank $rank printed no time";
        my @all = grep { $_->{name} ne 'graph' } events($all, $rank, '.*', track($all, $rank, 'stream 1'));
        my ($sum, $group) = (0, 0);
        for my $event (@all) {
            my $its = $event->{args}{group} // 0;
            $sum += $event->{dur} / 1000 if !$its || $its != $group;
            $group = $its;
        }
        push @why, "rank $rank: the operations take $sum ms, the events say $ms"
            if $sum > $ms + 1e-3 || $sum < $ms / 2;
    }
    ok(!@why, "$form, $n ranks: the times of a stream are together what its events say", join "\n", @why);
}

sub check_order {
    my ($all, $n, $form) = @_;
    my @why;
    for my $rank (0 .. $n - 1) {
        my $one   = track($all, $rank, 'stream 1');
        my $names = join ', ', map { $_->{name} } events($all, $rank, '.*', $one);
        push @why, "stream 1 of rank $rank has $names"
            if $names ne 'set, copy device to device, ' . 'ncclAllReduce, ' x 3
            . 'ncclSend, ncclRecv, ncclReduce, copy device to device, graph'
            && $names ne 'set, copy device to device, ' . 'ncclAllReduce, ' x 3
            . 'ncclRecv, ncclSend, ncclReduce, copy device to device, graph';
        my ($received) = events($all, $rank, 'ncclRecv', $one);
        my ($copied)   = events($all, $rank, 'copy device to host', track($all, $rank, 'stream 2'));
        push @why, "the copy on stream 2 of rank $rank does not come behind the event"
            if !$received || !$copied
            || ns($copied->{ts}) < ns($received->{ts}) + ns($received->{dur});
        my ($waits) = grep { $_->{args}{line} eq line('cudaStreamSynchronize(one)', 'cudaEventRecord(end') }
            events($all, $rank, 'cudaStreamSynchronize');
        my ($last)  = (events($all, $rank, 'copy device to device', $one))[-1];
        push @why, "the host of rank $rank goes on before its stream is done"
            if !$waits || !$last
            || ns($waits->{ts}) + ns($waits->{dur}) + 50e3 < ns($last->{ts}) + ns($last->{dur});
    }
    ok(!@why, "$form, $n ranks: what events and streams put in order is in order", join "\n", @why);
}

# The operations of that name, without the host's time in the calls, which is shown where it is long.
sub queued {
    return grep { exists $_->{args}{bytes} } events(@_);
}

sub check_arguments {
    my ($all, $n, $form) = @_;
    my @why;
    for my $rank (0 .. $n - 1) {
        my @sums = queued($all, $rank, 'ncclAllReduce');
        my $text = join '; ', map {
            my $its = $_->{args};
            join ' ', @$its{qw(bytes count type reduction communicator operation)}
        } @sums;
        my $want = join '; ', map { "1048576 262144 ncclFloat32 $_" } 'ncclSum 1 2', 'ncclSum 2 1', 'ncclMax 1 3';
        push @why, "rank $rank: $text" if $text ne $want;
        my ($send) = queued($all, $rank, 'ncclSend');
        my ($recv) = queued($all, $rank, 'ncclRecv');
        my ($last) = queued($all, $rank, 'ncclReduce');
        push @why, "rank $rank: the group is none"
            if !$send->{args}{group} || $send->{args}{group} != $recv->{args}{group}
            || ns($send->{ts}) != ns($recv->{ts}) || ns($send->{dur}) != ns($recv->{dur});
        push @why, "rank $rank: peers or root"
            if $send->{args}{peer} != ($rank + 1) % $n || $recv->{args}{peer} != ($rank + $n - 1) % $n
            || $last->{args}{root} != $n - 1;
        push @why, "rank $rank: the line of a call is $last->{args}{line}"
            if $last->{args}{line} ne line('ncclReduce(');
        my ($comes) = events($all, $rank, 'MPI_Recv');
        push @why, 'rank 0 does not wait for the last rank in MPI_Recv'
            if $rank == 0 && $n > 1 && ($comes->{args}{'for rank'} // -1) != $n - 1;
        my ($copy) = events($all, $rank, 'copy host to device');
        push @why, "rank $rank: a copy in the default stream"
            if !$copy || $copy->{tid} != track($all, $rank, 'default stream')
            || $copy->{args}{call} ne 'cudaMemcpy' || $copy->{args}{bytes} != 1048576;
    }
    ok(!@why, "$form, $n ranks: sizes, types, communicators, peers and lines", join "\n", @why);
}

sub check_work {
    my ($program, $n, $form, %settings) = @_;
    my ($code, $out, $err, $all) = record($program, $n, '', %settings);
    ok($code == 0 && $err eq '', "$form, $n ranks: the program runs as ever", "exit code $code\n$err");
    my $why = wrong($all, $n);
    ok(!$why, "$form, $n ranks: a file of the format, in which no two operations overlap", $why) or return;
    check_order($all, $n, $form);
    check_times($all, $out, $n, $form);
    check_arguments($all, $n, $form);
}

my $flags = cpu_flags();
my $work  = build("$Bin/timeline/work.c", 'work', $flags);
check_work($work, $_, 'CPU build') for 1 .. 4;
check_work($work, 2, 'without checks', NCCL_CPU_CHECK => 'off');

# --- As a library in front of the stand-in ----------------------------------------------

my $library = build("$Bin/timeline/work.c", 'library', library_flags());
$before = "$top/check/nccl-check";
check_work($library, $_, 'nccl-check') for 2, 3;
$before = '';

# --- With the modelled clock --------------------------------------------------------------

my %clock = (NCCL_CPU_CLOCK => 'h200');
for my $n (1, 4, 7) {
    my ($code, $out, $err, $all) = record($work, $n, '', %clock);
    my $first = read_file("$dir/run.json");
    my $why   = wrong($all, $n);
    ok($code == 0 && !$why, "modelled, $n ranks: a file of the format", "$why\n$err") or next;
    check_order($all, $n, 'modelled');
    my @why;
    for my $rank (0 .. $n - 1) {
        my ($ms) = $out =~ /^rank $rank: ([\d.]+) ms$/m;
        my @all  = grep { $_->{name} ne 'graph' } events($all, $rank, '.*', track($all, $rank, 'stream 1'));
        my $took = $all[-1]{ts} + $all[-1]{dur} - $all[0]{ts};
        push @why, "rank $rank: the operations take $took µs, the events say $ms ms"
            if abs($took - 1000 * $ms) > 0.002;
        push @why, "rank $rank: between the first operations is a gap"
            if grep { ns($all[$_]{ts}) + ns($all[$_]{dur}) != ns($all[$_ + 1]{ts}) } 0 .. 3;
    }
    ok(!@why, "modelled, $n ranks: a stream takes as long as its events say", join "\n", @why);
    (undef, my $again) = record($work, $n, '', %clock);
    ok(read_file("$dir/run.json") eq $first, "modelled, $n ranks: the same file again");
    local %ENV = (%ENV, %clock);
    (undef, my $without) = run($work, $n, '');
    my ($x, $y) = map { join "\n", sort split /\n/ } $out, $without;
    ok($x eq $y, "modelled, $n ranks: a timeline changes no time", "with:\n$x\nwithout:\n$y");
}

# --- Who waited for whom ----------------------------------------------------------------

my ($code, $out, $err, $all) = record($work, 3, 'late');
# The stream waits for the data, and the host in the call, since it is the communicator's first.
my @late;
for my $rank (0 .. 2) {
    my ($sum) = grep { ($_->{args}{operation} // 0) == 2 } events($all, $rank, 'ncclAllReduce');
    my ($call) = events($all, $rank, 'ncclAllReduce', track($all, $rank, 'host'));
    my ($for, $ms) = ($sum->{args}{'for rank'} // -1, $sum->{args}{waited_ms} // 0);
    push @late, "rank $rank: the stream waits $ms ms for rank $for"
        if $rank < 2 ? $for != 2 || $ms < 30 : $for != -1;
    push @late, "rank $rank: the call takes $call->{dur} µs" if $rank < 2 && $call->{dur} < 30_000;
}
ok($code == 0 && !@late, 'ranks, and their hosts, wait for the one that is late', join "\n", @late);

# --- One process, several devices, no MPI ------------------------------------------------

my $alone = build("$Bin/timeline/devices.c", 'devices', $flags);
($code, $out, $err, $all) = record($alone, 1, '', CPU_DEVICES => 3);
my @tracks = map { track($all, 0, "device $_, stream 1") } 0 .. 2;
ok($code == 0 && !grep({ $_ < 0 } @tracks), 'one process with three devices has their streams', $err);
my @spans = map { my ($sum) = events($all, 0, 'ncclAllReduce', $_); $sum } @tracks;
ok(3 == grep({ $_ && $_->{args}{group} } @spans), 'each has its part of the group');

# --- Ends of all kinds -------------------------------------------------------------------

sub alone {
    my @left = glob "$dir/run.json*";
    return @left == 1 ? '' : join ' ', 'files:', @left;
}

($code, $out, $err, $all) = record($work, 2, '', NCCL_TIMELINE => "$dir/no/such/folder.json");
my @lines = grep { !/^$/ } split /\n/, $err;
ok($code == 0 && @lines == 1
   && $lines[0] eq "NCCL TIMELINE: cannot write $dir/no/such/folder.json: No such file or directory",
   'a file that cannot be written: one line, and the exit code is the program\'s', "exit code $code\n$err");

# What is no file stays what it is, and a link stays a link.
my $pipe = "$dir/pipe";
system('mkfifo', $pipe) == 0 or die "no pipe: $!\n";
my $reader = open(my $from, '-|', "cat '$pipe'") or die "cat: $!\n";
{
    local %ENV = (%ENV, NCCL_TIMELINE => $pipe);
    ($code, $out, $err) = run($work, 2, '');
}
kill 'TERM', $reader if !-p $pipe;
my $read = do { local $/; <$from> };
close $from;
ok($code == 0 && $err eq '' && -p $pipe && !wrong(eval { JSON::PP->new->utf8->decode($read) }, 2),
   'a pipe gets the timeline, and stays a pipe', "exit code $code\n$err");
unlink $pipe;
symlink "$dir/elsewhere.json", "$dir/link.json";
open my $elsewhere, '>', "$dir/elsewhere.json" or die "$dir/elsewhere.json: $!\n";
close $elsewhere;
{
    local %ENV = (%ENV, NCCL_TIMELINE => "$dir/link.json");
    run($work, 2, '');
}
ok(-l "$dir/link.json" && -s "$dir/elsewhere.json", 'a link stays a link');

($code, $out, $err, $all) = record($work, 3, 'dies');
ok($code == 3, 'a rank that ends the job keeps its exit code', "exit code $code\n$err");
my $why = wrong($all, 3) || alone();
ok(!$why, 'the file has what was there, of all ranks', $why);
ok(scalar grep({ $_->{args}{unfinished} } events($all, 0, 'cuda.*|nccl.*')), 'and says what had not ended');

($code, $out, $err, $all) = record($work, 3, 'dies', NCCL_CPU_CHECK => 'off');
ok($code == 3 && $all && events($all, 2, 'ncclAllReduce') && !alone(),
   'without checks at least its own part', "exit code $code\n$err");

my $mistake = build("$Bin/wrong/mismatch-count.c", 'mistake', $flags);
($code, $out, $err, $all) = record($mistake, 4, '');
ok($code == 1 && $err =~ /^NCCL CHECK: mismatch/m, 'a report ends the job as ever', "exit code $code\n$err");
$why = wrong($all, 4) || alone();
ok(!$why, 'and the file is there', $why);

($code, $out, $err, $all) = record($work, 2, 'leaves');
$why = !$all ? 'no file' : alone();
ok(!$why, 'ranks that leave without MPI_Finalize', $why);

# Four ranks as torchrun starts them on two machines: each has its own file.
write_file("$dir/as_torchrun", <<'END');
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
export LOCAL_RANK=$((rank % 2)) LOCAL_WORLD_SIZE=2 GROUP_RANK=$((rank / 2)) NCCL_CHECK_LINK=tcp
exec "$@"
END
chmod 0755, "$dir/as_torchrun";
$before = "$dir/as_torchrun";
($code, $out, $err, $all) = record($work, 4, '');
$before = '';
my @files = glob "$dir/run.json*";
my @ranks = map { my @names = read_file($_) =~ /"name":"rank (\d) on/g; "@names" } @files;
ok($code == 0 && "@ranks" eq '0 1 2 3' && @files == 2, 'without MPI each machine writes its own file', "@files: @ranks\n$err");
unlink @files;

unlink "$dir/run.json";
($code, $out, $err) = run($work, 2, '');
ok($code == 0 && !-e "$dir/run.json" && $err eq '', 'no file without NCCL_TIMELINE');

# --- The picture ----------------------------------------------------------------------------

sub draw {
    my ($variables) = @_;
    unlink "$dir/a.svg";
    my $said = `make -s --no-print-directory -C '$top' timeline $variables 2>&1`;
    return ($? >> 8, $said, read_file("$dir/a.svg", ':encoding(UTF-8)'));
}

record($work, 4, '', %clock);
my ($status, $said, $svg) = draw("FILE='$dir/run.json' SVG='$dir/a.svg'");
my %bars;
$bars{$_}++ for $svg =~ /<text [^>]*class="label">([^<]*)</g;
ok($status == 0 && $svg =~ m{^<svg .*</svg>\n\z}s && ($bars{ncclAllReduce} // 0) == 12
   && ($bars{ncclSend} // 0) == 4 && ($svg =~ tr/µ//) > 5 && $svg =~ />rank 3, device 3</
   && $svg =~ />times are modelled on h200</ && $said eq "Drawn: $dir/a.svg\n", 'make timeline draws all ranks, and says where', $said);
my %title;
$title{ s/, [\d.]+ to [\d.]+ .*//sr }++ for $svg =~ /<title>([^<]*)</g;
ok(($title{'ncclAllReduce, 1048576 bytes'} // 0) >= 12 && ($title{'ncclSend to rank 1, 524288 bytes'} // 0) == 1,
   'a bar says its call, its bytes and when', join "\n", sort keys %title);
ok(4 == (() = $svg =~ /class="arrow"/g), 'an arrow leads from each send to its receive');
my ($first) = $svg =~ /class="ink time">([^<]*)</;
ok($first =~ /^0 \S+s$/, 'the time starts at 0', $first);
# Contrast, as WCAG computes it, of the text on all that it stands on.
sub luminance {
    my @parts = map { my $c = hex($_) / 255; $c <= 0.03928 ? $c / 12.92 : (($c + 0.055) / 1.055)**2.4 } $_[0] =~ /[0-9a-f]{2}/g;
    return 0.2126 * $parts[0] + 0.7152 * $parts[1] + 0.0722 * $parts[2];
}
my @dim;
for my $scheme ($svg =~ /svg\.timeline \{(.*?)\}/gs) {
    my %color = $scheme =~ /--(\w+): (#\w+);/g;
    for my $under (grep { !/^(?:ink|edge|grid)$/ } keys %color) {
        my ($dark, $light) = sort { $a <=> $b } map { luminance($color{$_}) + 0.05 } 'ink', $under;
        push @dim, "$under $color{$under}" if $light / $dark < 4.5;
    }
}
ok(!@dim && $svg =~ /prefers-color-scheme: dark/, 'text has a contrast of 4.5, in both schemes', "@dim");
my ($late) = draw("FILE='$dir/run.json' SVG='$dir/a.svg' FROM=0.1305 TO=0.14");
my $part = read_file("$dir/a.svg");
ok($late == 0 && $part =~ />ncclReduce</ && $part !~ /AllReduce/ && $part =~ />0 is 130\.5 \S+ after the start/,
   'or what lies between two times');
ok($part =~ />collective</ && $part !~ />(?:send, receive|computation)</, 'the legend has only what occurs');
# README.md shows lesson 11's picture, and says how it is drawn; readme.t draws it for the lesson.
my @shown = map { [read_file("$top/$_") =~ /(--layers 4 [-\w ]*--steps 2)|(FROM=\S+ TO=\S+)/g] } 'README.md', '11-overlap/README.md';
my @how = map { join ' ', grep { defined } @$_ } @shown;
ok($how[0] =~ /--layers .*FROM=/ && index($how[1], $how[0]) >= 0, 'README.md draws lesson 11 as the lesson does', "@how");
# Late in a long run the times are long, and must not run into one another.
($status, $said, $svg) = draw("FILE='$Bin/timeline/h200.json' SVG='$dir/a.svg' FROM=1925.6 TO=1934.95");
my @marks;
push @marks, [$1, $2] while $svg =~ /<text x="([\d.]+)" y="[\d.]+" class="ink time">([^<]*)</g;
# Seven pixels a character, half of them on either side.
my @close = grep { $marks[$_][0] - $marks[$_ - 1][0] < 7 * length $marks[$_][1] } 1 .. $#marks;
push @close, 'the last' if @marks && $marks[-1][0] + 3.5 * length $marks[-1][1] > ($svg =~ /width="(\d+)"/)[0];
ok($status == 0 && @marks >= 4 && !@close, "lesson 10 on H200: the times stand apart", "@close");
rename "$dir/run.json", "$dir/run";
$said = `make -s --no-print-directory -C '$top' timeline FILE='$dir/run' 2>&1`;
ok($? == 0 && read_file("$dir/run") =~ /^\{/ && -s "$dir/run.svg", 'a file of another name is not drawn over', $said);
for my $time ('FROM=soon', 'TO=-1', 'FROM=1s TO=2s') {
    ($status, $said) = draw("FILE='$dir/run' SVG='$dir/a.svg' $time");
    ok($status != 0 && $said =~ /is no time: FROM and TO are in ms/, "$time is no time", $said);
}
($status, $said) = draw("FILE='$dir/none.json'");
ok($status != 0 && $said =~ m{^no .*/none\.json here: NCCL_TIMELINE=.* writes it$}m, 'and says what is missing', $said);
($status, $said) = draw("FILE='$Bin/timeline/work.c' SVG='$dir/a.svg'");
ok($status != 0 && $said =~ /is no timeline/, 'or no timeline', $said);
{
    local $ENV{PATH} = "$dir/path:/usr/bin:/bin";
    $said = `make -s --no-print-directory -C '$top' profile LESSON=none 2>&1`;
    my ($line) = split /\n/, $said;
    ok($? != 0 && $line =~ /^make profile needs (nsys|a GPU)|^no lesson/, 'make profile says what it lacks', $said);
}

done_testing();
