#!/usr/bin/env perl
# results/measure/median.pl FILE…: of files that say the same with other numbers, the line of medians.
use v5.26;
use warnings;

my (@runs, $first);
for my $file (@ARGV) {
    open my $in, '<', $file or die "$file: $!\n";
    my @lines = map { chomp; [split /([\s,:]+)/] } <$in>;
    my $shape = join "\n", map { scalar @$_ } @lines;
    push @runs, \@lines;
    die "$file has not the lines of $ARGV[0]\n" if $shape ne ($first //= $shape);
}
die "usage: median.pl FILE…\n" if !@runs;
for my $l (0 .. $#{$runs[0]}) {
    say join '', map {
        my $at  = $_;
        my @all = map { $_->[$l][$at] } @runs;
        my @of  = sort { $a <=> $b } grep { /^-?\d+(\.\d+)?(e[-+]?\d+)?$/ } @all;
        my ($low, $high) = @of ? @of[$#of / 2, @of / 2] : ();
        @of < @all ? $all[0] : $low == $high ? $low : sprintf '%.4g', ($low + $high) / 2;
    } 0 .. $#{$runs[0][$l]};
}
