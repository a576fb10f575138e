#!/usr/bin/env perl
# What stands in common/ is used by at least two lessons: a function that only one lesson calls
# belongs to that lesson, and one that nobody calls nowhere. Functions that others in common/
# need are at home there. Prints TAP.
#
#     tests/lessons/functions.t [FOLDER]     the course in another folder
use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use Test::More;
use lib "$Bin/..";
use Programs qw(read_file);

# Without comments and strings, in which a name is no use.
sub code {
    my ($path) = @_;
    return read_file($path) =~ s{("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/}{$1 ? '""' : ' '}gser;
}

# Function by function of common/: "" or what is wrong. In the order of their names.
sub problems {
    my ($course) = @_;
    my %common  = map { $_ => code($_) } glob "$course/common/*.h";
    my $common  = join "\n", values %common;
    my %lessons;
    $lessons{basename dirname $_} .= code($_) for glob "$course/[0-9][0-9]-*/*.[ch]";
    my %problem;
    for my $name ($common =~ /^static inline[\w\s\*]*?\b(\w+)\(/gm) {
        my @users = grep { $lessons{$_} =~ /\b$name\b/ } sort keys %lessons;
        my $within = () = $common =~ /\b$name\b/g; # once where it is defined
        $problem{$name} =
            @users > 1 || $within > 1 ? ''
          : @users ? "only $users[0] uses it" : 'nobody uses it';
    }
    return \%problem;
}

# These checks must be able to fail.
my $small = tempdir('functions-XXXXXX', TMPDIR => 1, CLEANUP => 1);
sub write_file {
    my ($name, $text) = @_;
    mkdir dirname "$small/$name";
    open my $out, '>', "$small/$name" or die "$name: $!\n";
    print $out $text;
    close $out;
}
write_file('common/a.h', <<'END');
static inline void shared(void) {
}
static inline _Noreturn struct wide *alone(int a,
                                             int b) {
}
static inline double inner(void) {
}
#define MACRO() inner()
/* unused() is only talked of, "unused" */
static inline void unused(void) {
}
END
write_file('00-a/a.c', "shared(); alone(1, 2); MACRO(); // unused()\n");
write_file('01-b/b.c', "puts(\"alone\");\n");
write_file('01-b/b.h', "shared();\n");
my $found = problems($small);
ok(join(' ', sort keys %$found) eq 'alone inner shared unused', 'finds the functions of common/');
ok($found->{alone} eq 'only 00-a uses it', 'finds the one that a single lesson uses');
ok($found->{unused} eq 'nobody uses it',   'finds the one that is not used');
ok($found->{shared} eq '' && $found->{inner} eq '', 'accepts what is shared');

my $problem = problems($ARGV[0] // "$Bin/../..");
ok(keys %$problem > 20, 'the course has functions in common/');
ok($problem->{$_} eq '', "$_" . ($problem->{$_} && ": $problem->{$_}")) for sort keys %$problem;
done_testing();
