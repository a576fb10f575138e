#!/usr/bin/env perl
# How the checks are put together: no two object files need each other, not even by way of others;
# no file has more than 800 lines and no function more than 80; every function that a header declares
# stands in a list of the front's. Prints TAP.
use strict;
use warnings;
use File::Basename qw(basename);
use File::Find qw(find);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use lib $Bin;
use Programs qw(cpu_flags read_file write_file $top);

my ($number, $failed) = (0, 0);

sub ok($$;@) {
    my ($right, $name, @why) = @_;
    $number++;
    $failed++ if !$right;
    print $right ? '' : 'not ', "ok $number - $name\n";
    print map { "# $_\n" } @why if !$right;
}

# The object files in each circle of the needs that `nm` shows.
sub circles {
    my (%needs, %defined, %wants);
    for my $object (@_) {
        for (`nm --plugin=none -g '$object'`) {
            $defined{$1} = $object          if /^\S+ [A-TV-Z] (\S+)$/;
            push @{ $wants{$object} }, $1 if /^\s+[Uw] (\S+)$/;
        }
    }
    for my $object (@_) {
        $needs{$object}{ $defined{$_} } = 1 for grep { defined $defined{$_} } @{ $wants{$object} };
        delete $needs{$object}{$object};
    }
    my $reach = sub {
        my ($from) = @_;
        my (%seen, @open);
        @open = keys %{ $needs{$from} };
        while (defined(my $next = pop @open)) {
            push @open, keys %{ $needs{$next} } if !$seen{$next}++;
        }
        return \%seen;
    };
    my %reached = map { $_ => $reach->($_) } @_;
    return grep { $reached{$_}{$_} } @_;
}

# "file:line: 85 lines" for each function that is too long, "file: 900 lines".
sub too_long {
    my @found;
    for my $file (@_) {
        my @lines = split /\n/, read_file($file);
        push @found, "$file: " . @lines . ' lines' if @lines > 800;
        my $start;
        for my $i (0 .. $#lines) {
            $start = $i if !defined $start && $lines[$i] =~ /^\w[^;]*$/ && $lines[$i] !~ /^(struct|enum|union)\b[^(]*$|^#|:$/;
            undef $start if defined $start && $lines[$i] =~ /;$/ && $lines[$start] !~ /\{$/ && !grep { /\{$/ } @lines[$start .. $i];
            next if $lines[$i] ne '}' || !defined $start;
            push @found, "$file:" . ($start + 1) . ': ' . ($i - $start + 1) . ' lines' if $i - $start >= 80;
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
system("cd '$dir' && \${CC:-gcc} -c a.c b.c c.c d.c") == 0 or die "no compiler\n";
ok(join(' ', circles(map { "$dir/$_.o" } qw(a b c d))) eq join(' ', map { "$dir/$_.o" } qw(a b c)),
    'finds a circle of three, and not who needs one of them');
ok(join(' ', too_long("$dir/d.c")) eq "$dir/d.c:3: 82 lines", 'finds a function of 82 lines');

my $lists = "$top/check/front/api";
write_file("$dir/nccl.h", "ncclResult_t ncclAllReduce(int a);\nncclResult_t pncclNew(int a);\nncclResult_t ncclNew(int a);\n"
    . "ncclResult_t\nncclBroken(int a,\n           int b);\nncclResult_t ncclName /* on */\n    (int a);\n"
    . "/* ncclResult_t ncclTold(void); */\nstatic inline int own(void) {\n    return ncclCalled(1);\n}\n");
my $said = `awk -f $lists/known.awk $lists/nccl.list $dir/nccl.h 2>&1`;
my $unknown = join ' ', $said =~ /: (\w+) does not stand/g;
ok($? != 0 && $unknown eq 'ncclNew ncclBroken ncclName', 'finds the functions that no list knows, on one line or on several', $said);
for my $list (glob "$lists/*.list") {
    my ($header) = read_file($list) =~ /^# header (\S+)/m or next;
    $said = `awk -f $lists/known.awk $list $top/cpu/include/$header 2>&1`;
    ok($? == 0, "$header: every function stands in a list", $said);
}

cpu_flags(); # builds
my (@objects, @sources);
find(sub { push @objects, $File::Find::name if /\.o$/ }, "$top/build/cpu/check");
find(sub { push @sources, $File::Find::name if /\.[ch]$/ }, "$top/check");
ok(@objects > 40, 'the objects of the checks are there');

# A row without a function is a call that the judge never hears of.
my %defined = map { $_ => 1 } `nm --plugin=none --defined-only @objects` =~ / T (\w+)$/gm;
my $declared = join '', map { read_file($_) } glob "$top/cpu/include/*.h";
my @lost;
for my $row (map { grep { /^\w+ \|/ } split /\n/, read_file($_) } glob "$lists/*.list") {
    my ($name) = $row =~ /^((?:cuda|cublas|nccl)\w+) \|/ or next;
    next if $row =~ /\| unseen|!OVER_STANDIN/ || $declared !~ /\b${name}(?:_v2)?\(/;
    push @lost, $name if !$defined{$name} && !$defined{"${name}_v2"};
}
ok(!@lost, 'every function that stands in a list is seen', "@lost");
my @circles = circles(@objects);
ok(!@circles, 'no two object files of the checks need each other', @circles);
my @long = too_long(@sources);
ok(!@long, 'no file of the checks over 800 lines, no function over 80', @long);
my @misnamed = grep { my $name = basename($_); read_file($_) !~ m{\A/\*\n \* \Q$name\E: } } @sources;
ok(!@misnamed, 'every file of the checks begins with its name', @misnamed);
print "1..$number\n";
exit($failed ? 1 : 0);
