#!/usr/bin/env perl
# Each measured figure of a text stands in results/, with the same unit, rounded as the text has it: in a section that
# the paragraph links (FILE.md#heading), or the last paragraph above that links one; where none does, a lesson's page
# has the sections whose headings name the lesson. If a row there begins with words, the text has one of them; if it
# is about sizes or numbers of ranks and the text names any, then these. The text may also repeat what it or a block
# has shown since the last heading (readme.t runs the blocks), and a per cent or a factor may be a quotient of two
# figures shown. Numbers without a unit count in a paragraph that links results/, and ratios in a table below one.
# A size beside a time or a rate is one of a row there. On a page of results/ itself, numbers of programs are looked for in
# its tables (above `named`).
# Left out are sentences that speak of the CPU build or link to where a figure comes from (https:), whole
# seconds (mostly limits), and what stands below a comment: <!-- figures: where they come from -->.
#
#     tests/pages/figures.t [-v] [-r] [PAGE...]     -v: each figure; -r: how many random figures of the same shape pass
use strict;
use utf8;
use warnings;
use FindBin qw($Bin);
use List::Util qw(any first max uniq);
use Test::More;
chdir "$Bin/../.." or die;
binmode $_, ':encoding(UTF-8)' for *STDOUT, Test::More->builder->output, Test::More->builder->failure_output;

my %option = map { $_ => 1 } map { @ARGV && $ARGV[0] eq $_ ? shift @ARGV : () } qw(-v -r);
sub read_file { open my $in, '<:encoding(UTF-8)', $_[0] or die "$_[0]: $!\n"; local $/; return scalar <$in> }

# Units: what they measure, and how many of the first of these.
my %unit = ('' => ['number', 1], 'µs' => ['time', 1], us => ['time', 1], ms => ['time', 1e3], s => ['time', 1e6],
    seconds => ['time', 1e6], 'GB/s' => ['rate', 1], 'MB/s' => ['rate', 1e-3], B => ['size', 1], bytes => ['size', 1],
    kB => ['size', 1e3], MB => ['size', 1e6], GB => ['size', 1e9], KiB => ['size', 1 << 10], MiB => ['size', 1 << 20],
    GiB => ['size', 1 << 30], '%' => ['percent', 1], '% of' => ['share', 1], times => ['factor', 1]);
my $units = join '|', map { quotemeta } sort { length $b <=> length $a } grep { $_ } keys %unit;
my $number = qr/(?<![\w.,-])(?<!NCCL )(?<!PyTorch )(?<!lesson )(?<!lessons )[-+−~]?\d+(?:\.\d+)?(?!\w|\.\d)/i;
my @names = qw(one two three four five six seven eight nine ten);
my %times = (twice => 2, map { my $n = $_ + 1; ("$names[$_] times" => $n, "$names[$_] and a half times" => $n + 0.5) } 0 .. $#names);
my $times = join '|', keys %times;
sub units_in { return grep { $unit{$_}[0] =~ /time|rate/ } uniq($_[0] =~ /(?<![\w\/'])(?<!\d )($units)(?![\w\/])/g) }
sub words_in { return grep { !/^(?:that|with|from|call|lesson)$/ } map { lc } $_[0] =~ /[a-z]{4,}/gi }

# The figures of a text, [digits, unit]: "16.4 and 21.4 µs" are two in µs. Those without a unit have the default, or,
# with a point, that of the one before: "5.9 µs (to 6.3)". "~" is before what was written in words.
sub figures {
    my ($text, @default) = @_;
    my ($last, @found) = '';
    while ($text =~ /($number(?:(?:,? (?:to|and|or|instead of) |, |; )$number)*)(?:[ -]?($units)(?![\w\/]))?/g) {
        my ($numbers, @unit) = ($1, $2 // (@default ? @default : ''));
        for my $digits ($numbers =~ /$number/g) {
            push @found, map { [$digits =~ s/^[-+−]//r, $_ || ($digits =~ /\./ ? $last : '')] } @unit;
        }
        $last = $unit[0] if $unit{$unit[0]}[0] =~ /time|rate/;
    }
    return @found;
}
sub sizes_in { return map { $_->[0] * $unit{$_->[1]}[1] } grep { $unit{$_->[1]}[0] eq 'size' } figures(@_) }

sub anchor { return '#' . lc $_[0] =~ s/[^\w\s-]//gr =~ s/ /-/gr }    # of a heading
sub cells { return $_[0] =~ /\|((?:[^|`]|`[^`]*`)*)(?=\|)/g }

# The figures of a block (a table, a paragraph, or what stands in ```). In a table the unit is that of the cell, the
# column, the row, a column to the left, or the default. Words and sizes are what the row is about.
my $rows = 0;
sub content {
    my ($block, @unit) = @_;
    my $kind = $block =~ /^\|/ ? 'table' : $block =~ /^`/ ? 'code' : 'text';
    my ($id, @found, @head) = ++$rows;
    for my $line ($kind eq 'text' ? $block =~ s/\n/ /gr : grep { !/^[| :-]+$/ } split /\n/, $block) {
        my @cell = $kind eq 'table' ? cells($line) : $line;
        @head = $kind eq 'table' ? @cell : '' if !@head;
        my @of_row = $kind eq 'text' ? () : units_in($cell[0]);
        my @sizes = $kind eq 'table' ? map { sizes_in($cell[$_], 'B') } grep { defined $cell[$_] && (!$_ || ($head[$_] // "") =~ /bytes|size/) } 0, 1 : ();
        @unit = @of_row if $kind eq 'code' && @of_row;
        my ($number, @left) = 0;
        for my $column (0 .. $#cell) {
            my $title = $head[$column] // '';
            my @of_column = units_in($title);
            @left = @of_column if @of_column;
            my @default = $kind eq 'text' ? () : @of_column ? @of_column
                : $title =~ /ratio|hidden|idle|bytes|size|relative|N−1|^ [NMBk] $/ ? '' : @of_row ? @of_row : @left ? @left : @unit;
            my ($about) = grep { @$_ } [sizes_in($kind eq 'table' && $cell[$column] =~ /^(.*):/ ? $1 : '')], [sizes_in($title)], \@sizes, [0];
            my %all = (kind => $kind, block => $id, row => $rows, text => "$title $line", sizes => $about, words => [$kind eq 'table' ? words_in($cell[0]) : ()]);
            push @found, map { {%all, digits => $_->[0], unit => $_->[1], what => $unit{$_->[1]}[0],
                value => $_->[0] =~ s/~//r * $unit{$_->[1]}[1], column => $kind eq 'table' ? $column : $number++} } figures($cell[$column], @default);
        }
        $rows++;
    }
    return @found;
}

# What one can count in a table of programs: how many cells of a column say something, or after how many whole seconds,
# or have "–", or nothing; in all rows, and in those that begin with the same word in the column beside the name.
sub counts {
    my ($head, undef, @row) = map { [map { s/^ +| +$//gr } cells($_)] } split /\n/, $_[0];
    my ($id, %count) = ++$rows;
    for my $cell (@row) {
        for my $column (2 .. $#$head) {
            my @says = $cell->[$column] =~ /^(–?)$/ ? $1 : ('said', $cell->[$column] =~ /, (\d+)\.\d+ s$/);
            for my $of ('', $cell->[1] =~ /^(\w+)/) { $count{"$head->[$column] $of"}{$_}++ for @says }
        }
    }
    return map { my ($text, $row) = ($_, ++$rows); map { {kind => 'count', block => $id, row => $row, text => $text, sizes => [0],
        words => [], digits => $_, unit => '', what => 'number', value => $_, column => 1} } values %{$count{$text}} } sort keys %count;
}
sub blocks { return $_[0] =~ /(^```.*?^```$|(?:^\|[^\n]*\n)+|^<!--[^\n]*|^[^|\n][^\n]*(?:\n(?!\||```)[^\n]+)*)/gms }

# results/, by FILE, FILE#heading, and number of the lesson.
my %section;
for my $file (glob 'results/*.md') {
    my ($name) = $file =~ m{/(.*)};
    for my $text (split /^(?=##? )/m, read_file($file)) {
        for my $part ($text, $text =~ /^(### .*?)(?=^### |\z)/gms) {
            my ($title) = $part =~ /^#+ (.*)/;
            my $key = $name . anchor($title);
            my @unit = units_in($title);
            for my $block (blocks($part)) {
                my @of_block = $block =~ /^\|/ ? () : units_in($block);
                @unit = @of_block if @of_block;
                push @{$section{$key}}, content($block, @unit), $block =~ /^\|.*\| – \|/s ? counts($block) : ();
            }
            next if $part ne $text;
            my $lessons = $title =~ /^(?:Lessons? )?(\d\d(?:(?:,? and |, | to )\d\d)*)\b/ ? $1 =~ s/ to /../gr =~ s/,? and |, /,/gr : '';
            my @lessons = map { my ($from, $to) = split /\.\./; $from + 0 .. $to // $from } split /,/, $lessons;
            push @{$section{$_}}, @{$section{$key}} for $name, @lessons;
        }
    }
}

sub same { # NUMBER DIGITS: it is that, rounded to as many digits
    my ($value, $digits) = @_;
    return $digits =~ s/~// ? abs($value / $digits - 1) <= 0.075
        : abs($value - $digits) <= 0.5 * 10 ** -($digits =~ /\.(\d+)/ ? length $1 : 0) + 1e-9 * $value;
}
sub stands { # DIGITS FIGURE THERE...
    my ($digits, $figure, @there) = @_;
    return first { $_->{what} eq 'any' ? $_->{digits} eq $digits
        : $_->{what} eq $figure->{what} && same($_->{value} / $unit{$figure->{unit}}[1], $digits) } @there;
}
sub quotient { # DIGITS FIGURE THERE...
    my ($digits, $figure, @there) = @_;
    my $of = $figure->{what};
    return if $of !~ /factor|percent|share/;
    for my $a (grep { $_->{what} =~ ($of eq 'factor' ? qr/time|rate|any|size/ : qr/time|rate|any/) && $_->{value} } @there) {
        for my $b (grep { $_->{what} eq $a->{what} && $_->{block} == $a->{block} && $_->{value} } @there) {
            my $q = $a->{value} / $b->{value};
            return $a if ($a->{row} == $b->{row} || $a->{column} == $b->{column} && ($of eq 'factor' || $a->{kind} ne 'code'))
                && same({factor => $q, share => 100 * $q, percent => 100 * abs($q - 1)}->{$of}, $digits);
        }
    }
    return;
}

# On a page of results/ a text names those rows of a table of programs that have most words in common with it, and the
# row of all. Numbers of programs are there, or are the difference of two in one row. Left out are those after "up to"
# or "3 of", and those in brackets.
sub stems { return uniq map { s/s$//r } map { lc } $_[0] =~ /\d{2,}|(?!(?:the|and|that|with|nccl)\b)[a-z][\w-]{2,}/gi }
sub named { # TEXT THERE...
    my ($text, @there) = @_;
    my (%shared, %most);
    my %in = map { $_ => 1 } stems($text);
    $shared{$_->{row}} //= grep { $in{$_} } stems($_->{text} =~ s/^[^|]*(?=\|)//r) for @there;
    $most{$_->{block}} = max($most{$_->{block}} // 0, $shared{$_->{row}}) for @there;
    return grep { $_->{column} && ($shared{$_->{row}} == $most{$_->{block}} || $_->{text} =~ /\| all \|/) } @there;
}
sub difference { # DIGITS THERE...
    my ($digits, @there) = @_;
    for my $a (grep { $_->{what} eq 'number' && $_->{kind} ne 'count' && $_->{text} !~ /\| all \|/ } @there) {
        return $a if any { $_->{what} eq 'number' && $_->{row} == $a->{row} && abs($_->{value} - $a->{value}) == $digits } @there;
    }
    return;
}
sub programs { # BLOCK FIGURE...: its numbers of programs, each with a way to look for one among these figures and in pages linked
    my ($block, @own) = @_;
    my $text = $block =~ s/\n/ /gr =~ s/\d{4}-\d\d-\d\d|lessons \d[\d, to]+(?:and \d+)?//gir;
    my @there = grep { $_->{kind} ne 'text' } @own, map { @{$section{$_} // die "results/$_: no such heading\n"} } $text =~ /\]\(([\w.-]+\.md(?:#[^)]+)?)\)/g;
    my @found;
    for my $figure ((any { $_->{kind} eq 'count' } @there) ? content($text =~ s/`[^`]*`|\]\([^)]*\)//gr) : ()) {
        my $digits = $figure->{digits};
        next if $figure->{what} ne 'number' || $digits !~ /^\d\d+$/ || $digits eq '100' || $text =~ /(?:up to|\b\d of) $digits\b|\([^)]*\b$digits\)/;
        my @named = named($text =~ s/(?<![\d.])$digits(?![\d.])//gr, @there);
        push @found, [$figure, sub { stands($_[0], $figure, @named) // difference($_[0], @named) }];
    }
    return @found;
}
sub random { # DIGITS: others of the same shape
    return $_[0] =~ s/\d+/my ($n, $point) = ($&, $` ne '' && $` ne '~'); $n eq '0' && !$point ? $n : join '', map { $_ || $point ? int rand 10 : 1 + int rand 9 } 0 .. length($n) - 1/ger;
}

my @pages = @ARGV ? @ARGV : ('README.md', 'errors.md', glob('{[0-2][0-9]-*,check,cpu,common,jobs,results,check/front/timeline,tests/check}/*.md'));
my (%looked, %passed);
srand 1;
for my $page (@pages) {
    my $lesson = $page =~ /^(\d\d)-/ ? $1 + 0 : 'none';
    my ($in_results) = $page =~ m{^results/(.*)};
    my @missing;
    for my $part (split /^(?=#+ [A-Z0-9])/m, read_file($page)) {
        my ($before, $skip, @linked, @shown) = '';
        my $heading = $part =~ /^## (.*)/ ? anchor($1) : '';
        my @own = map { @{$section{$_} // []} } $in_results ? "$in_results$heading" : ();
        @own = @{$section{$in_results}} if $in_results && !any { $_->{kind} eq 'count' || $_->{kind} eq 'table' } @own;
        for my $block (map { $in_results ? split /\n(?=- )/ : $_ } blocks($part)) {
            if ($block =~ /^<!--/) { $skip ||= $block =~ /figures:/; next }
            if ($skip) { $skip = 0; next }
            my @links = map { $section{$_} // die "$page: results/$_ has no such heading\n" } $block =~ m{results/([\w.-]+\.md(?:#[^)]+)?)\)}g;
            @linked = map { @$_ } @links if @links;
            my $kind = $block =~ /^\|/ ? 'table' : $block =~ /^`/ ? 'code' : 'text';
            my $text = $kind ne 'text' ? $block : join ' ', grep { !/CPU build|\]\(https:/i } split /(?<=[.:;?!])\)?\s+/, $block;
            $text =~ s/\]\([^)]*\)//g if $kind ne 'code';
            $text =~ s/`[^`]*`//g, $text =~ s/\b($times)(?= (?:as (?:long|fast|high)|longer|slower|faster))/~$times{$1} times/g if $kind eq 'text';
            my @figures = content($text);
            for (grep { $kind eq 'code' && $_->{what} eq 'number' } @figures) { $_->{what} = 'any' }
            my @look = $in_results && $block =~ /^[^|`#]/ ? programs($block, @own) : ();
            for my $figure ($kind eq 'code' || $in_results ? () : @figures) {
                my ($digits, $unit, $what) = @$figure{qw(digits unit what)};
                next if $what eq 'size' && !(any { $_->{what} =~ /time|rate/ } @figures) || $unit =~ /^s/ && $digits !~ /\./ || $unit =~ /%/ && $digits =~ /^(0|100)$/
                    || $what eq 'number' && !($kind eq 'table' ? @linked && $digits =~ /\./ : @links && $digits =~ /../);
                my ($label) = $kind eq 'table' ? $figure->{text} =~ /\|([^|]*)/ : $block;
                my %word = map { $_ => 1 } words_in($label);
                my %size = map { $_ => 1 } sizes_in($figure->{text}), sizes_in($kind eq 'table' ? "$label; $before" : $block, 'B');
                my @there = grep { !@{$_->{words}} || any { $word{$_} } @{$_->{words}} } @linked ? @linked : @{$section{$lesson} // []};
                my @sizes = $what eq 'size' ? map { {%$figure, value => $_, text => 'a row'} } map { @{$_->{sizes}} } @there : ();
                @there = grep { any { !$_ || $size{$_} } @{$_->{sizes}} } @there if %size;
                my @other = $kind eq 'table' ? () : grep { $_ != $figure } @shown, @figures;
                push @look, [$figure, sub { stands($_[0], $figure, @sizes, @there, @shown) // quotient($_[0], $figure, @other) }];
            }
            for (@look) {
                my ($find, $digits, $unit, $what) = ($_->[1], @{$_->[0]}{qw(digits unit what)});
                my $at = $find->($digits);
                print "# $page: $digits $unit: ", $at ? "$at->{digits} $at->{unit} in $at->{text}" : 'NOWHERE', "\n" if $option{-v};
                push @missing, "$digits $unit" if !$at;
                my $sort = ($in_results ? 'in results: ' : '') . ($what =~ /time|rate/ ? 'times and rates' : $what =~ /number|size/ ? "${what}s" : 'per cent and factors');
                for (1 .. ($option{-r} ? 20 : 0)) { $looked{$sort}++; $passed{$sort}++ if $find->(random($digits)) }
            }
            push @shown, @figures;
            $before = $block if $kind ne 'table';
        }
    }
    ok(!@missing, $page) or diag('not in results/: ', join ', ', @missing);
}
printf "# random %s: %.0f %% of %d pass\n", $_, 100 * ($passed{$_} // 0) / $looked{$_}, $looked{$_} for sort keys %looked;
done_testing();
