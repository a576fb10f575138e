#!/usr/bin/env perl
# Writes the lists of misconceptions into the instructor's notes, from the wrong answers that the exercises know.
#
#     book/notes/lists.pl            writes them
#     book/notes/lists.pl --check    says which page's list is not what the exercises say, exit code 1
use strict;
use warnings;
use open qw(:std :encoding(UTF-8));
use FindBin;
use lib "$FindBin::Bin/../../exercises/lib";
use Encode qw(decode_utf8);
use Source qw(load_all lessons read_file variant);

my $mark = "<!-- The rest is written by book/notes/lists.pl -->\n";

# Lines of a text, without comments and the spaces around them, and without braces if they don't matter; a call that goes on on the next line is one.
sub statements {
    my ($text, $braces) = @_;
    $text =~ s{/\*.*?\*/}{}gs;
    $text =~ s{\s*//.*$}{}gm;
    1 while $text =~ s/(\([^;{}]*|[-+*=?:&|,]) *\n\s*/$1 /;
    return grep { /\w/ } map { ($braces ? s/^\s+|\s+$//gr : s/^[\s}]+|[\s{]+$//gr) =~ s/\bCHECK_\w+\(\s*(.*)\);$/$1/r } split /\n/, $text;
}

sub quoted { return map { /`/ ? "`` $_ ``" : "`$_`" } map { s/;$//r } @_ }

# code LINES: two of them, calls before all else, and no bare declarations.
sub code {
    my @said = grep { !/^[\w ]+ \*?\w+;?$/ || /^return/ } @_;
    @_ = @said if @said;
    my @lines = quoted((grep { /\(/ } @_), grep { !/\(/ } @_);
    return @lines > 2 ? "$lines[0], $lines[1] and more" : join ' and ', @lines;
}

# The name and the arguments of a statement that is one call.
sub call {
    my ($name, $inside) = $_[0] =~ /^(\w+)\((.*)\);?$/ or return;
    my @arguments;
    push @arguments, $1 while $inside =~ /\G\s*((?:[^(),]|(\((?:[^()]|(?2))*\)))+),?/g;
    return $name, @arguments;
}

# Where two calls of one function differ, in words, or nothing. A cast to void * is only there for the compiler.
sub passes {
    my ($given, $right) = @_;
    my ($name, @given) = call($given);
    my ($other, @right) = call($right);
    return '' if !$name || !$other || $name ne $other || @given != @right;
    s/^\(void \*\)// for @given;
    my @at = grep { ($given[$_] // '') ne ($right[$_] // '') } 0 .. $#right;
    return '' if !@at || @at > 2;
    my $in_place = @given > 1 && $given[0] eq $given[1] && $right[0] ne $right[1] && $name !~ /Gather|Scatter/ ? ', in place' : '';
    return "Passes " . join(' and ', map { join ' instead of ', quoted($given[$_], $right[$_]) } @at) . " to `$name`$in_place";
}

# Which line stands elsewhere, if it is only one.
sub moved {
    my ($given, $right) = @_;
    for my $i (0 .. $#$right) {
        my @rest = @$right[grep { $_ != $i } 0 .. $#$right];
        for my $j (grep { $given->[$_] eq $right->[$i] } 0 .. $#$given) {
            next if "@rest" ne "@$given[grep { $_ != $j } 0 .. $#$given]";
            my ($line, $before) = quoted($right->[$i], $j ? $given->[$j - 1] : '');
            return 'Has ' . $line . ($j ? " after $before" : ' first');
        }
    }
    return 'Has the right lines in another order';
}

# What a wrong answer does, from its difference to the solution.
sub does {
    my ($exercise, $wrong, $braces) = @_;
    my @right = statements(variant($exercise, 'solution'), $braces);
    my @given = statements(variant($exercise, $wrong->{name}), $braces);
    return 'Sets braces differently: ' . lcfirst does($exercise, $wrong, 1) if "@right" eq "@given" && !$braces;
    my (%right, %given);
    $right{$_}++ for @right;
    $given{$_}++ for @given;
    my @new = grep { $right{$_} ? $right{$_}-- && 0 : 1 } @given;
    my @gone = grep { $given{$_} ? $given{$_}-- && 0 : 1 } @right;
    my $passes = @new == 1 && @gone == 1 ? passes($new[0], $gone[0]) : '';
    return $passes if $passes;
    return @gone ? 'Writes ' . code(@new) . ' instead of ' . code(@gone) : 'Adds ' . code(@new) if @new;
    return 'Leaves out ' . code(@gone) if @gone;
    return moved(\@given, \@right);
}

# A piece of a message, as a piece.
sub piece {
    my ($text) = @_;
    return ($text =~ /^[A-Z]/ ? '' : '… ') . $text . ($text =~ /[.?:]$/ ? '' : ' …');
}

# list EXERCISES: a paragraph for each, with what readers do wrong and what they are told then.
sub list {
    my $text = "\n## Usual misconceptions\n\nEach is a wrong answer to an exercise: what it does, and what its author is told. "
        . "`…` stands for words that\ndiffer. What to answer: the exercise's hints, `make exercise N=… HINT=1`.\n";
    for my $exercise (@_) {
        $text .= "\n**$exercise->{number} $exercise->{title}**\n\n";
        for my $wrong (@{ $exercise->{wrong} }) {
            $text .= $exercise->{ending} eq 'txt' ? "- “$wrong->{name}”: $wrong->{says}\n"
                : '- ' . does($exercise, $wrong) . ". Is told: " . (quoted(piece($wrong->{says})))[0] . "\n";
        }
    }
    return $text;
}

my $check = "@ARGV" eq '--check';
my $bad = 0;
for my $lesson (lessons(load_all("$FindBin::Bin/../../exercises"))) {
    my ($number) = $lesson->[0]{number} =~ /^(\d\d)/;
    my $page = "$FindBin::Bin/$number.md";
    my $text = decode_utf8(read_file($page));
    my ($hand) = $text =~ /\A(.*?\Q$mark\E)/s;
    if (!defined $hand) {
        print "book/notes/$number.md: no page, or it lacks the line $mark";
        $bad = 1;
        next;
    }
    my $new = $hand . decode_utf8(list(@$lesson));
    next if $new eq $text;
    if ($check) {
        print "book/notes/$number.md: the list is old, type book/notes/lists.pl\n";
        $bad = 1;
        next;
    }
    open my $out, '>', $page or die "$page: $!\n";
    print $out $new;
    close $out or die "$page: $!\n";
}
exit $bad;
