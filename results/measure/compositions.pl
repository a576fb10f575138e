#!/usr/bin/env perl
# Compositions: what is made of several operations, measured on GPUs and predicted by the modelled clock.
#
#   results/measure/compositions.pl                  predicts results/compositions.csv, and prints the table of cpu/clock.md
#   results/measure/compositions.pl --write …        and keeps the predictions in the file
#   results/measure/compositions.pl --file FILE --machine MACHINE.conf      another file, another machine
#   results/measure/compositions.pl --only 08,09     only these lessons
#   results/measure/compositions.pl --measure N…     on GPUs: what they take, on N ranks, as lines of such a file
#   … --short, --long                        only those that take less than 0.1 ms, or more (18 is with the others)
#
# A line is: lesson (and which of its figures), ranks, size, measured µs, predicted µs. Large sizes are predicted
# with small data: on a machine with `scale 32` each byte counts as 1024, each multiplication as 32768.
use v5.26;
use warnings;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Getopt::Long;

my ($write, $file, $machine, $only, $measure, $short, $long);
GetOptions('write' => \$write, 'file=s' => \$file, 'machine=s' => \$machine, 'only=s' => \$only,
    'measure' => \$measure, 'short' => \$short, 'long' => \$long) && ($measure || !@ARGV) or die "usage: see the first lines of $0\n";
chdir dirname($0) . "/../.." or die;
$file    //= 'results/compositions.csv';
$machine //= 'cpu/machines/h200.conf';
my $work   = tempdir(CLEANUP => 1);
my $number = qr/([\d.]+)/;

# Of each lesson: its program; the options for a size, divided by `scale`; and how the output is read: pairs of a
# name (or '') and µs. `many`: one run has all sizes, and the pairs are triples that begin with the size.
my %lessons = (
    '05' => {
        program => 'ring', aside => 1,
        options => sub { my ($scale, $bytes) = @_; '-n ' . $bytes / 4 / $scale**2 },
        read    => sub { ['', $_[0] =~ /^a ring +$number µs/m] },
    },
    '08' => {
        program => '08-three-all-reduces/three_all_reduces', many => 1,
        options => sub { my ($scale, $bytes) = @_; '--time --max ' . $bytes / $scale**2 },
        read    => sub {
            my ($output, $scale) = @_;
            map { my @f = split; ([$f[0] * $scale**2, 'reduce_broadcast', $f[4]],
                    [$f[0] * $scale**2, 'scatter_gather', $f[6]]) } $output =~ /^ +(\d.*)/mg;
        },
    },
    '09' => {
        program => '09-pipelined-ring/pipelined_ring',
        options => sub {
            my ($scale, $bytes, $pieces) = @_;
            "--time --pieces $pieces -n " . $bytes / 4 / $scale**2;
        },
        read => sub { ['', 1000 * ($_[0] =~ /^ring, in .* $number ms/m)[0]] },
    },
    '11' => {
        program => '11-overlap/overlap',
        options => sub {
            my ($scale, $model, $bucket, $ctas) = @_;
            my ($layers, $width, $share, $ranks) = model($scale, $model);
            $bucket *= 4 * $width**2 if $bucket ne 'all';
            "--time --layers $layers --width $width --batch RANKS*$share --steps 3 --ctas $ctas --bucket $bucket";
        },
        read => sub { ['', 1000 * ($_[0] =~ /^both +$number ms/m)[0]] },
    },
    '12' => {
        program => '12-sharded/sharded',
        options => sub {
            my ($scale, $model, $stage) = @_;
            my ($layers, $width, $share) = model($scale, $model);
            "--time --layers $layers --width $width --batch RANKS*$share --steps 3 --stage $stage";
        },
        read => sub { ['', 1000 * ($_[0] =~ /^both +$number ms/m)[0]] },
    },
    '13' => {
        program => '13-experts/experts',
        options => sub {
            my ($scale, $model, $load) = @_;
            # As many tokens as there, for their number decides how many go where.
            my (undef, $width, $share) = model(1, "1x$model");
            $width /= $scale**2;
            "--time --layers 2 --width $width --batch RANKS*$share --steps 1 --load $load";
        },
        read => sub {
            ['counts', 1000 * ($_[0] =~ /^counts first +$number ms/m)[0]],
                ['padded', 1000 * ($_[0] =~ /^padded +$number ms/m)[0]];
        },
    },
    '14' => {
        program => '14-pipeline/pipeline',
        options => sub {
            my ($scale, $model, $micro, @order) = @_;
            my ($layers, $width, $batch) = model($scale, $model);
            "--time --layers $layers --width $width --batch $batch --micro $micro --steps 3 @order";
        },
        read => sub { ['', 1000 * ($_[0] =~ /^a step $number ms/m)[0]] },
    },
    '15' => {
        program => '15-grid/grid',
        options => sub {
            my ($scale, $model, $columns) = @_;
            my ($layers, $width, $batch) = model($scale, $model);
            "--time --layers $layers --width $width --batch $batch --steps 3 --columns $columns";
        },
        read => sub {
            ['rows', 1000 * ($_[0] =~ /^with the rows +$number ms/m)[0]],
                ['columns', 1000 * ($_[0] =~ /^with the columns +$number ms/m)[0]];
        },
    },
    '18' => {
        program => '18-memory/memory_kinds',
        options => sub { my ($scale, $bytes) = @_; '-n ' . $bytes / 4 / $scale**2 },
        read    => sub {
            my @ms = $_[0] =~ /^copy, then sum: $number ms a batch; copy beside the sum: $number ms/m;
            ['in_turn', 1000 * $ms[0]], ['beside', 1000 * $ms[1]];
        },
    },
    '19' => {
        program => '19-small-messages/small_messages',
        options => sub { my ($scale, $bytes, $values) = @_; '-n ' . $bytes / 4 . " --values $values" },
        read    => sub {
            my %names = ('a call for each value' => 'calls', 'all calls in one group' => 'group',
                'one call for all values' => 'one', 'that call in a graph' => 'graph',
                'that call on windows' => 'windows', 'windows and a graph' => 'windows_graph');
            map { [$names{$_}, $_[0] =~ /^$_ +$number/m] } sort keys %names;
        },
    },
    '20' => {
        program => '20-one-sided/one_sided',
        options => sub { my ($scale, $bytes) = @_; '-n ' . $bytes / 4 / $scale**2 },
        read    => sub {
            ['send', $_[0] =~ /^send and receive +$number us/m], ['put', $_[0] =~ /^put and signal +$number us/m];
        },
    },
);

sub model {    # layers, width, samples: width and samples are sides of matrices
    my ($scale, $model) = @_;
    my ($layers, $width, $samples) = split /x/, $model;
    return ($layers, $width / $scale, $samples / $scale);
}

# Small sizes are as they are; large ones must be whole when they are divided.
sub scale_of {
    my ($lesson, $size) = @_;
    return $size =~ /^(\d+)/ && $1 >= 1 << 20 ? 32 : 1 if $lesson =~ /^0|^18|^19|^20/;
    return $size =~ /^(\d+)/ && $1 >= 1024 ? 16 : 1 if $lesson eq '13';
    return $size =~ /x(\d+)/ && $1 >= 1024 ? 32 : 1;
}

my (%built, $failed);
sub program {
    my ($lesson) = @_;
    my $name = $lesson->{program};
    my $make = $lesson->{aside} ? "results/measure/aside $name" : "make -s -C " . dirname($name) . " >/dev/null";
    $built{$name} //= system($make) == 0 or exit 1;
    return $lesson->{aside} ? "build/$name/$name" : $name;
}

# What a lesson prints: a list of name and µs, or of size, name and µs.
sub run {
    my ($name, $ranks, $size, $scale, $modelled) = @_;
    my $lesson  = $lessons{$name};
    my $options = $lesson->{options}->($scale, split ' ', $size);
    $options =~ s/RANKS\*([\d.]+)/$ranks * $1/e;
    my $command = "mpirun --oversubscribe -np $ranks " . program($lesson) . " $options";
    local %ENV = %ENV;
    $modelled ? $ENV{NCCL_CPU_CLOCK} = $modelled : delete $ENV{NCCL_CPU_CLOCK};
    print STDERR "$command\n" if $measure;
    my $output = `timeout -k 5 120 $command 2>&1 </dev/null`;
    return if $? && $measure && $output =~ /needs NCCL/;
    print STDERR $output, "exit code ", $? >> 8, ": $command\n" if $?;
    die "nothing is predicted\n" if $? && !$measure;
    $failed |= $?;
    return if $?;
    return $lesson->{read}->($output, $scale);
}

# --- On GPUs ------------------------------------------------------------------------------

if ($measure) {
    $| = 1;
    my $cpu = ($ENV{BACKEND} // '') eq 'cpu';    # a rehearsal
    say 'lesson,ranks,size,measured_us,predicted_us';
    for my $ranks (@ARGV) {
        my (@short, @long);
        push @short, ['08', $cpu ? 4096 : 67108864];
        push @short, map { ['13', $_] } $cpu ? '8x16 uneven' : ('64x128 even', '1024x1024 uneven');
        push @short, ['19', '8 16'], ['20', 4096];
        push @short, map { ['09', "1048576 $_"] } 2, 4 if !$cpu;
        push @long, ['13', '4096x8192 uneven'], ['18', 67108864], ['20', 4194304] if !$cpu;
        # The dear ones on the largest number of ranks only.
        push @long, $cpu ? (['09', '4096 4'], ['11', '2x16x16 1 4'])
            : (['09', '268435456 4'], ['11', '16x2048x2048 1 4'], ['11', '8x4096x2048 1 4'], ['12', '16x2048x2048 3'],
                ['12', '16x2048x2048 2'], ['14', '16x2048x16384 8'], ['14', '16x2048x16384 32'],
                ['15', '16x2048x4096 2'], ['15', "16x2048x4096 $ranks"])
            if $ranks == $ARGV[-1];
        my @runs = grep { !$only || ",$only," =~ /,$_->[0],/ } $long ? () : @short, $short ? () : @long;
        for (@runs) {
            my ($name, $size) = @$_;
            for (run($name, $ranks, $size, 1)) {
                my ($bytes, $which, $us) = $lessons{$name}{many} ? @$_ : ($size, @$_);
                printf "%s,%d,%s,%.4g,\n", join(' ', $name, $which || ()), $ranks, $bytes, $us;
            }
        }
    }
    exit($failed ? 1 : 0);
}

# --- On the modelled machine ----------------------------------------------------------------

open my $in, '<', $file or die "$file: $!\n";
my ($head, @rows) = <$in>;
my $folder = dirname($machine);
$machine = `pwd` =~ s/\n//r . "/$machine" if $machine !~ m{^/};
for my $scale (1, 16, 32) {
    open my $out, '>', "$work/$scale.conf" or die;
    print $out "as $machine\nscale $scale\n";
    close $out;
}

my %got;    # what was run, and what came out
sub predicted {
    my ($name, $which, $ranks, $size) = @_;
    my $scale = scale_of($name, $size);
    # One run has all sizes of a kind: up to the largest.
    my $asked = $size;
    if ($lessons{$name}{many}) {
        ($asked) = sort { $b <=> $a } map { my ($l, $r, $s) = split /,/;
            $l =~ /^$name/ && $r == $ranks && scale_of($name, $s) == $scale ? $s : () } @rows;
    }
    my $found = $got{"$name,$ranks,$asked"} //= do {
        my %out;
        for (run($name, $ranks, $asked, $scale, "$work/$scale.conf")) {
            my ($bytes, $of, $us) = $lessons{$name}{many} ? @$_ : ($size, @$_);
            $out{"$of,$bytes"} = $us;
        }
        \%out;
    };
    return $found->{"$which,$size"} // die "$name $which, $size on $ranks ranks: no figure\n";
}

my %off;
for (@rows) {
    chomp;
    my ($lesson, $ranks, $size, $measured, $was) = split /,/;
    my ($name, $which) = split ' ', $lesson;
    my $us = $was;
    if (!$only || ",$only," =~ /,$name,/) {
        $us = 0 + sprintf '%.4g', predicted($name, $which // '', $ranks, $size);
        print STDERR "$_, now $us\n" if $only && $us ne $was;
    }
    $_ = join ',', $lesson, $ranks, $size, $measured, $us;
    my $part = $us / $measured - 1;
    push @{$off{$lesson}}, [$part, $ranks, $size, $measured, $us];
}
if ($write) {
    open my $out, '>', $file or die "$file: $!\n";
    print $out $head, map { "$_\n" } @rows;
    close $out;
}

sub percent { sprintf '%+.0f %%', 100 * $_[0] }
sub mean { my $sum = 0; $sum += abs $_->[0] for @_; sprintf '%.1f %%', 100 * $sum / @_ }
my @every = map { @$_ } values %off;
say '| lesson | compositions | mean | worst | ranks, size | measured | predicted |';
say '| --- | --- | --- | --- | --- | --- | --- |';
for my $lesson (sort keys %off) { line($lesson, @{$off{$lesson}}) }
line('**100 µs and more**', grep { $_->[3] >= 100 } @every);
line('**all**', @every);

sub line {
    my ($name, @of) = @_;
    my ($w) = sort { abs $b->[0] <=> abs $a->[0] || $a->[2] cmp $b->[2] } @of;
    printf "| %s | %d | %s | %s | %d, %s | %s µs | %s µs |\n", $name, scalar @of, mean(@of), percent($w->[0]), @$w[1 .. 4];
}
