#!/usr/bin/env perl
# The instructor's pages: sums of times, costs, and lists are those of what they are taken from; what the notes let an
# instructor type exists.
use strict;
use warnings;
use Test::More;
use FindBin;
chdir "$FindBin::Bin/../.." or die;
$ENV{PATH} = "/usr/bin:/bin:$ENV{PATH}";

sub text { my ($name) = @_; open my $in, '<', $name or return ''; local $/; return <$in> }

my (%minutes, %title);
my $readme = text('README.md');
while ($readme =~ /^\| \[(\d\d) (.*?)\]\(.*?\| (\d+) min \|$/mg) { ($title{$1}, $minutes{$1}) = ($2, $3) }
my %exercise = map { m{/(\d\d\.\d+)-} ? ($1 => 1) : () } glob 'exercises/*.*';
my %break;
$break{ m{^(\d\d)-.*/(\w+)-} ? "$1$2" : '' } = 1 for glob '[0-9][0-9]-*/break/*.diff';

sub in_words {
    my ($m) = @_;
    return join ' ', ($m >= 60 ? int($m / 60) . ' h' : ()), ($m % 60 ? $m % 60 . ' min' : ());
}

# sum LESSONS, EXERCISES, MORE: the time of what two cells of a table list, and minutes beside that.
sub sum {
    my ($lessons, $exercises, $more) = @_;
    my $sum = $more // 0;
    for (split /, /, $lessons) { $sum += $minutes{$_} // die "no lesson $_" }
    for (split /, /, $exercises) { $sum += $exercise{$_} ? 10 : die "no exercise $_" }
    return in_words($sum);
}

my $ex = qr/(?:\d\d\.\d+(?:, )?)+/;
my $le = qr/(?:\d\d(?:, )?)+/;
my $page = text('book/notes/README.md');
my ($rows, $heading, %begun) = (0, '');
for my $line (split /\n/, "$page\n" . text('exercises/grading.md')) {
    $heading = $1 if $line =~ /^##+ (.*)/;
    if ($line =~ /^\| (\d+) \| ($le) \| (.*?) \| ($ex) \| (.*?) \|$/) {
        is("$3, $5", sum($2, '') . ', ' . sum('', $4), "week $1: the times");
        my ($week, $long) = ($1, 0);
        $long += $minutes{$_} for split /, /, $2;
        cmp_ok($long, '<=', 90, "week $week: fits 90 minutes");
    } elsif ($line =~ /^\| (?:([^|]+) \| )?($le) \| ($ex) \|(?:.*\|)? ([^|]+) \|$/) {
        # Half a day has a pause, and the first one of a plan has CUDA.
        my $first = $heading eq 'Half a day' || $heading eq 'A course of two days' && !$begun{$heading}++;
        is($4, sum($2, $3, 15 + 15 * $first), ($1 // 'two days') . ": lessons $2: the time");
    } else {
        next;
    }
    $rows++;
}
cmp_ok($rows, '>=', 12 + 12 + 4, 'all plans were looked at');

my $cost = `jobs/cost`;
is($?, 0, 'jobs/cost works');
ok(index($page, $cost) >= 0, 'what the jobs cost is what their scripts say') or diag $cost;
# Its arithmetic, of a script of known limits: 2 nodes of 4 x 8 cores for 90 minutes, three times.
mkdir "build" if !-d "build";
my $script = "build/notes-$$.slurm";
open my $out, '>', $script or die;
print $out "#SBATCH --nodes=2 # a comment\n#SBATCH --ntasks-per-node=4\n#SBATCH --cpus-per-task=8\n#SBATCH --time=01:30:00\n#SBATCH --array=0-2%2\n";
close $out;
like(`jobs/cost $script`, qr/\| 3 × 64 \| 90 min \| 288\.0 \| 8640 \|/, 'three jobs of 2 nodes and 90 minutes are 288 core-hours');
unlink $script;

my $lists = `book/notes/lists.pl --check`;
is("$?$lists", '0', "the lists of misconceptions are the exercises' own");

# A misconception is told by what it does: a call with another argument, a line that is missing, added or elsewhere.
my %told = ('00' => 'Passes `nranks - 1 - rank` instead of `rank` to `ncclCommInitRank`. Is told: `… the communicator calls',
    '01' => 'Has `cudaStreamSynchronize(stream)` after `cudaMemcpy(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost)`. Is told: `NCCL',
    '02' => 'Passes `mine` instead of `mean` to `ncclAllReduce`, in place. Is told: `…', # no cast
    '08' => 'Writes `ncclCommUserRank(across, &rank)` and `float *mine = buf + (size_t)rank * part` instead', # no `int rank`
    '04' => 'Leaves out `ncclGroupStart()` and `ncclGroupEnd()`. Is told: `NCCL CHECK: deadlock',
    '11' => 'Adds `cudaStreamSynchronize(sending)`. Is told: `…', '06' => 'Sets braces differently: writes `for (int i = 0; i < repeat; i++) {`');
ok(index(text("book/notes/$_.md"), "\n- $told{$_}") >= 0, "$_: $told{$_}") for sort keys %told;
# Whether a command works in the course's folder: make does, and what else has a program in the folder that it goes to.
sub found {
    my ($command) = @_;
    return $command !~ m{[(]|\./|\bcd\b} if $command =~ /^make /;
    my ($folder, $line) = $command =~ /^\(cd (\d\d-\S+) && (.*)\)$/ or return 0;
    my @programs = $line =~ m{(?<!\.)\./(\w+)|/build/break/\w+/(\w+)}g;
    return @programs && !grep { defined && !-e "$folder/$_.c" && !-e "$folder/$_.cu" } @programs;
}
ok(found($_), "found: $_") for '(cd 01-nccl-broadcast && mpirun -np 4 ./broadcast)', 'make break N=01b | less';
ok(!found($_), "not found: $_") for 'cd 01-nccl-broadcast && ./broadcast', './broadcast', '(cd 01-nccl-broadcast && ./hello)', '(cd 01 && ./broadcast)';

for my $lesson (sort keys %title) {
    my $notes = text("book/notes/$lesson.md");
    like($notes, qr/^# Notes for lesson $lesson: \Q$title{$lesson}\E$/m, "$lesson: the title");
    like($notes, qr/\*\*Time:\*\* $minutes{$lesson} minutes/, "$lesson: the time");
    if ($notes =~ /^\*\*Minutes\.\*\* ([^.]*)\./m) {
        my $sum = 0;
        $sum += $_ for $1 =~ / (\d+)(?=,|\z)/g;
        is($sum, $minutes{$lesson}, "$lesson: its minutes add up to the lesson's");
    }
    my @missing = grep { $notes !~ /\*\*\Q$_\E/ } 'Where to stop.', 'Ask the room,', 'Type live,', 'What goes wrong on the day.';
    is("@missing", '', "$lesson: all its parts");
    is(scalar(() = $notes =~ /^\d\. .*\? \*.*\*$/mg), 3, "$lesson: three questions with answers");
    like($page, qr/\]\($lesson\.md\)/, "$lesson: the page of all notes links to it");
    my ($typed) = $notes =~ /```sh\n(.*?)```/s;
    my ($stop) = $notes =~ /\*\*Where to stop\.\*\* On “(.*?)”/;
    $stop //= '?';
    like(text("book/slides/$lesson.md"), qr/^## \Q$stop\E$/m, "$lesson: where to stop is on a slide");
    is(join("\n", grep { !found($_) } split /\n/, $typed // '?'), '', "$lesson: what is typed is found in the course's folder");
    my @on_slides = map { /`([^`]*)`/g } text("book/slides/$lesson.md") =~ /^\*\*Type.*/mg;
    is(join("\n", grep { m{\./|^\(|^cd |make } && !found($_) } @on_slides), '', "$lesson: what its slides let one type, too");
    my @typed = map { s/ \| less$//r } split /\n/, $typed // '';
    my %typed = map { $_ => 1 } @typed;
    my %shown;
    my @shown = grep { $typed{$_} && !$shown{$_}++ } map { s/ \| less$//r } @on_slides;
    is(join("\n", grep { $shown{$_} } @typed), join("\n", @shown), "$lesson: what both let one type comes in the slides' order");
    is(join(' ', grep { !$break{$_} } ($typed // '') =~ /make break N=(\w+)/g), '', "$lesson: what it breaks exists");
}
done_testing;
