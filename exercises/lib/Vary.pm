# An exercise with other numbers: what its source says of them (README.md in the folder above), and the choice by a seed.
package Vary;
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use Exporter qw(import);

our @EXPORT_OK = qw(vary can_vary);

my @words = qw(no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty);

sub can_vary { return $_[0] =~ m{^//: (?:vary|shuffle|instead) }m }

# The text of a source with its values filled in: the first ones, or with a seed those of a year. Then no value is the
# first, and what said how they vary is gone.
sub vary {
    my ($text, $seed) = @_;
    my $draw = sub {
        my ($what, $n) = @_;
        return 0 if !defined $seed;
        return 1 + hex(substr md5_hex("$seed $what " . ($text =~ m{^//: title (.*)}m ? $1 : '')), 0, 6) % ($n - 1);
    };
    my (%value, %letter);
    while ($text =~ m{^//: vary (\S+) (.+?)\s*$}gm) {
        my ($names, @choices) = ($1, split ' ', $2);
        @value{split /,/, $names} = split /,/, $choices[$draw->($names, scalar @choices)];
    }
    if ($text =~ m{^//: shuffle (.+?)\s*$}m) {
        my @letters = split ' ', $1;
        my $by = $draw->('shuffle', scalar @letters);
        @letter{@letters} = map { $letters[($_ + $by) % @letters] } 0 .. $#letters;
    }
    $text =~ s{\[\[(?!\[)(.+?)\]\]}{$letter{$1} // value($1, %value)}ge;
    $text = in_order($text, sort keys %letter) if %letter && defined $seed;
    my @instead = map { s{\s*\n//: +}{ }gr } $text =~ m{^//: instead (.+(?:\n//:  +.+)*)}gm;
    # The lines of what follows keep their numbers.
    $text =~ s{^//: (?:vary|shuffle|instead) .*\n(?://:  +.*\n)*}{defined $seed ? '' : $& =~ tr/\n//cdr}gme;
    return $text if !defined $seed;
    if (@instead) {
        for (split / ; /, $instead[$draw->('instead', @instead + 1) - 1]) {
            my ($from, $to) = split / => /;
            $text =~ s/(?<!\w)\Q$from\E(?!\w)/$to/g or die "nothing is $from\n";
        }
    }
    return $text;
}

# What stands in double brackets: a name, or arithmetic with names. w(4) is four, W(4) is Four.
sub value {
    my ($expression, %value) = @_;
    return $value{$expression} if defined $value{$expression};
    my $code = $expression =~ s/\b([a-z]\w*)\b(?!\()/$value{$1} \/\/ die "[[$expression]]: what is $1?\n"/ger;
    my $result = eval $code;
    die "[[$expression]]: $@" if $@;
    return $result =~ /^[-\d.e+]+$/ ? 0 + sprintf '%.8g', $result : $result;
}

sub w { return $words[$_[0]] // $_[0] }
sub W { return ucfirst w(@_) }

# The paragraphs that begin with a letter, in the order of the letters.
sub in_order {
    my ($text, @letters) = @_;
    my $any = join '|', @letters;
    $text =~ s{^((?:$any)   .*?)(?=\n*(?:\z|^//: ))}{
        my $all = $1;
        my $between = $all =~ /\n\n(?:$any)   /m ? "\n\n" : "\n";
        join $between, sort map { s/\n+\z//r } split /^(?=(?:$any)   )/m, $all;
    }ems;
    return $text;
}

1;
