#!/usr/bin/env perl
# How check/, cpu/, common/, kernels/ and exercises/ are put together: no two object files need each
# other, not even by way of others, nor do two rooms (folders); no global name is defined twice; no file
# has 800 lines and no function more than 80; every function that a header declares stands in a list of
# the front's. Prints TAP.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Find qw(find);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use lib $Bin;
use Programs qw(cpu_flags done_testing ok read_file write_file $top);

# What `nm` shows of object files: for each the others that it needs, and "name: both" for what two define.
sub needs {
    my (%needs, %defined, %wants, @twice);
    for my $object (@_) {
        for (`nm --plugin=none -g '$object'`) {
            if (/^\S+ ([A-TX-Z]) (\S+)$/) {
                push @twice, "$2: $defined{$2} $object" if defined $defined{$2};
                $defined{$2} = $object;
            }
            push @{ $wants{$object} }, $1 if /^\s+[Uw] (\S+)$/;
        }
    }
    for my $object (@_) {
        $needs{$object} = { map { $_ => 1 } grep { defined && $_ ne $object } map { $defined{$_} } @{ $wants{$object} } };
    }
    return (\%needs, @twice);
}

# Those that need each other, by way of others or not.
sub circles {
    my ($needs) = @_;
    my %reached;
    for my $from (keys %$needs) {
        my (%seen, @open);
        @open = keys %{ $needs->{$from} };
        while (defined(my $next = pop @open)) {
            push @open, keys %{ $needs->{$next} } if !$seen{$next}++;
        }
        $reached{$from} = \%seen;
    }
    return sort grep { $reached{$_}{$_} } keys %reached;
}

# The same of the folders that they lie in.
sub rooms {
    my ($needs) = @_;
    my %rooms;
    for my $from (keys %$needs) {
        $rooms{ dirname($from) } //= {};
        $rooms{ dirname($from) }{ dirname($_) } = 1 for grep { dirname($_) ne dirname($from) } keys %{ $needs->{$from} };
    }
    return \%rooms;
}

# "file:line: 85 lines" for each function that is too long, "file: 900 lines".
sub too_long {
    my @found;
    for my $file (@_) {
        my $text = read_file($file);
        # An exercise has several solutions of one function, right ones and wrong ones, of which one is compiled.
        $text =~ s{^ *//: (?:starter|right|wrong)\b.*?(?=^ *//: (?:starter|solution|right|wrong|end)\b)}{}gms if $file =~ m{\bexercises/};
        my @lines = split /\n/, $text;
        push @found, "$file: " . @lines . ' lines' if @lines >= 800;
        my $start;
        for my $i (0 .. $#lines) {
            $start = $i if !defined $start && $lines[$i] =~ /^\w[^;]*$/ && $lines[$i] !~ /^(struct|enum|union)\b[^(]*$|^#|:$/;
            undef $start if defined $start && $lines[$i] =~ /;$/ && $lines[$start] !~ /\{$/ && !grep { /\{$/ } @lines[$start .. $i];
            next if $lines[$i] ne '}' || !defined $start;
            push @found, "$file:" . ($start + 1) . ': ' . ($i - $start + 1) . ' lines' if $i - $start >= 80 && grep { /\)[\w ]* ?\{$/ } @lines[$start .. $start + 9];
            undef $start;
        }
    }
    return @found;
}

# These checks must be able to fail.
my $dir = tempdir('layers-XXXXXX', TMPDIR => 1, CLEANUP => 1);
write_file("$dir/a.c", "void a(void);\nvoid b(void);\nvoid a(void) {\n    b();\n}\n");
write_file("$dir/b.c", "void b(void);\nvoid c(void);\nvoid b(void) {\n    c();\n}\n");
write_file("$dir/c.c", "void a(void);\nvoid c(void);\nvoid c(void) {\n    a();\n}\n");
write_file("$dir/d.c", "void a(void);\nvoid d(void);\nvoid d(void) {\n" . "    a();\n" x 80 . "}\n");
mkdir "$dir/room";
write_file("$dir/room/e.c", "void b(void);\nvoid e(void);\nvoid e(void) {\n    b();\n}\nvoid d(void);\nvoid d(void) {\n}\n");
system("cd '$dir' && \${CC:-gcc} -c a.c b.c c.c d.c && cd room && \${CC:-gcc} -c e.c") == 0 or die "no compiler\n";
my ($needs, @twice) = needs(map { "$dir/$_.o" } qw(a b c d room/e));
ok(join(' ', circles($needs)) eq join(' ', map { "$dir/$_.o" } qw(a b c)), 'finds a circle of three, and not what needs one of them');
ok("@twice" eq "d: $dir/d.o $dir/room/e.o", 'finds a name that is defined twice', @twice);
ok(!circles(rooms($needs)), 'rooms of which one needs the other are no circle');
$needs->{"$dir/c.o"}{"$dir/room/e.o"} = 1;
ok(join(' ', circles(rooms($needs))) eq "$dir $dir/room", 'finds rooms that need each other');
ok(join(' ', too_long("$dir/d.c")) eq "$dir/d.c:3: 82 lines", 'finds a function of 82 lines');

mkdir "$dir/exercises";
write_file("$dir/exercises/$_->[0].c", "void d(void) {\n    //: solution\n" . "    a();\n" x $_->[1] . "    //: wrong twice: it\n" . "    a();\n" x 50 . "    //: end\n}\n")
    for ['short', 50], ['long', 80];
ok(join(' ', too_long(glob "$dir/exercises/*.c")) =~ m{^\S*/long.c:1: \d+ lines$}, 'of an exercise only the solution counts');

my $lists = "$top/check/front/api";
write_file("$dir/nccl.h", "ncclResult_t ncclAllReduce(int a);\nncclResult_t pncclNew(int a);\nncclResult_t ncclNew(int a);\n"
    . "ncclResult_t\nncclBroken(int a,\n           int b);\nncclResult_t ncclName /* on */\n    (int a);\n"
    . "/* ncclResult_t ncclTold(void); */\nstatic inline int own(void) {\n    return ncclCalled(1);\n}\n");
my $said = `awk -f $lists/listed.awk $lists/nccl.list $dir/nccl.h 2>&1`;
my $unknown = join ' ', $said =~ /: (\w+) does not stand/g;
ok($? != 0 && $unknown eq 'ncclNew ncclBroken ncclName', 'finds the functions that no list knows, on one line or on several', $said);
for my $list (glob "$lists/*.list") {
    my ($header) = read_file($list) =~ /^# header (\S+)/m or next;
    $said = `awk -f $lists/listed.awk $list $top/cpu/include/$header 2>&1`;
    ok($? == 0, "$header: every function stands in a list", $said);
}

cpu_flags(); # builds
my $built = "$top/build/cpu";
my (@checks, @stand_in, @sources, @headers);
sub has_source {
    my ($path) = $_[0] =~ m{^\Q$built\E/(.*)\.o$} or return 0;
    return -e "$top/$path.c" || -e "$top/build/made/$path.c";
}
find(sub { push @checks, $File::Find::name if has_source($File::Find::name) }, "$built/check");
find(sub { push @stand_in, $File::Find::name if has_source($File::Find::name) }, grep { -e } "$built/cpu", "$built/kernels");
find(sub { push @sources, $File::Find::name if /\.(c|h|cc|cpp|cu|cuh)$/ }, map { "$top/$_" } qw(check cpu common kernels exercises));
ok(@checks > 40 && @stand_in > 40, 'the objects of the checks and of the stand-in are there');

# A row without a function is a call that the judge never hears of.
my %defined = map { $_ => 1 } `nm --plugin=none --defined-only @checks` =~ / T (\w+)$/gm;
my $declared = join '', map { read_file($_) } glob "$top/cpu/include/*.h";
my @lost;
for my $row (map { grep { /^\w+ \|/ } split /\n/, read_file($_) } glob "$lists/*.list") {
    my ($name) = $row =~ /^((?:cuda|cublas|nccl)\w+) \|/ or next;
    next if $row =~ /\| straight|!OVER_STANDIN/ || $declared !~ /\b${name}(?:_v2)?\(/;
    push @lost, $name if !$defined{$name} && !$defined{"${name}_v2"};
}
ok(!@lost, 'every function that stands in a list is seen', "@lost");
# NAME, and what breaks the rule.
sub none($@) {
    my ($name, @found) = @_;
    s{\Q$built\E/|\Q$top\E/}{}g for @found;
    ok(!@found, $name, @found);
}
for (['checks', @checks], ['stand-in', @stand_in]) {
    my ($whose, @of) = @$_;
    my ($needs, @twice) = needs(@of);
    none("no two object files of the $whose need each other", circles($needs));
    none("no two rooms of the $whose need each other", circles(rooms($needs)));
}
# What a program calls is defined twice: by the front, and by the stand-in below it.
my (undef, @both) = needs(@checks, @stand_in);
none('no name is defined twice', grep { !/^(?:p?nccl|cuda|cublas|cu[A-Z]|MPIX?_|__cuda)\w*: /a } @both);
none('no file has 800 lines, no function more than 80', too_long(@sources));
@sources = grep { m{^\Q$top\E/check/} } @sources;
my @misnamed = grep { my $name = basename($_); read_file($_) !~ m{\A/\*\n \* \Q$name\E: } } @sources;
ok(!@misnamed, 'every file of the checks begins with its name', @misnamed);
my $inside = read_file("$top/check/inside.md") =~ s/.*\n## Every file\n//sr;
my %there;
for my $row ($inside =~ /^\|.*\|$/mg) {
    for ((split /\|/, $row)[2] =~ /`([^`]+)`/g) {
        my ($name, $several) = /^(\w+)\.[\[{](.*)[\]}]$/ or do { $there{$_} = 1; next };
        $there{"$name.$_"} = 1 for $several =~ /,/ ? split /,/, $several : split //, $several;
    }
}
my @nowhere = grep { !$there{ basename($_) } } map { glob } map { "$top/check/{,*/,*/*/}*.$_" } qw(c h awk pl list);
ok(!@nowhere, 'every file of the checks stands in the table of inside.md', @nowhere);
done_testing();
