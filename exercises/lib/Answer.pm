# Answers to questions, and the runs in which they are seen.
package Answer;
use strict;
use warnings;
use Source qw(plain quoted read_file variant $top);
use Run qw(failed mpirun readable run_limited runs $backend);
use Build qw(build_checker build_lesson link_program);
use Exporter qw(import);

our @EXPORT_OK = qw(answer_of judge_answer same_answer);

# What stands after the last `answer:`, in the same line or a later one, or ''. It may be in bold, in a list or quoted;
# and instead of the colon may stand a wide one (U+FF1A), =, a dash, "is" or nothing.
sub answer_of {
    my ($text) = @_;
    my ($answer) = plain($text) =~ m{^.*^(?:[^\w\n]|_)*(?:(?:my|our|the)[ ])?answer[*_`]*
        (?:[ \t]+is\b|[ \t]*(?:[:=]|\xef\xbc\x9a)|[ \t]+-(?=[ \t])|(?=[ \t]+(?!with\b)|$))[\s*_`]*(.*?)[\s*_`]*$}imsx;
    return ($answer // '') =~ s/\n.*//sr;
}

# What to do where there is none; a line that was meant as one is quoted.
sub no_answer {
    my ($ex, $text) = @_;
    my %task = map { $_ => 1 } split /\s*\n/, variant($ex, 'starter');
    my ($line) = reverse grep { /\S/ && !$task{$_} } split /\s*\n/, plain($text);
    return 'There is no answer yet: write it after `answer:` in the file.' if !defined $line;
    return sprintf "There is no answer yet. The line '%.60s' is not read as one: write `answer: B`, or `answer: 12`.", $line;
}

# The numbers of an answer, with what their units are worth: [4, 'bytes', 1024] is 4 KiB.
sub numbers {
    my ($text) = @_;
    my %bytes   = ('' => 1, k => 1e3, m => 1e6, g => 1e9, t => 1e12, ki => 2**10, mi => 2**20, gi => 2**30, ti => 2**40);
    my %seconds = ('' => 1, m => 1e-3, u => 1e-6, n => 1e-9);
    my @values;
    $text = lc $text =~ s/\xc2\xb5|\xce\xbc/u/gr;
    while ($text =~ /(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:([kmgt]i?|)b(?:ytes?)?\b|([mun]?)s(?:ec(?:onds)?)?\b)?/g) {
        push @values, [$1, defined $2 ? ('bytes', $bytes{$2}) : defined $3 ? ('seconds', $seconds{$3}) : ('', 1)];
    }
    return @values;
}

# Whether an answer is the wanted one, whatever words stand around it. A number without a unit has the one
# that was asked for, or is of bytes. Where one is wanted, it may come after the way to it: 2 * 3 = 6.
sub same_answer {
    my ($given, $wanted, $within) = @_;
    my (@wanted, @given) = numbers($wanted);
    if (!@wanted) {
        my @letters = lc($wanted) =~ /\b[a-z]\b/g;
        return join(' ', @letters) eq join(' ', lc($given) =~ /\b[a-z]\b/g) if @letters > 1; # A D
        @given = lc($given) =~ /\b(?:[a-z]|\Q$wanted\E)\b/gi;
        return @given == 1 && $given[0] eq lc $wanted;
    }
    $given =~ s/[a-z]+ *\d+ *[:=]//gi; # in "rank 3: 1" the answer is 1
    $given =~ s/.*=(?=.*\d)// if @wanted == 1;
    @given = numbers(@wanted == 1 ? $given =~ s/(?<=\d)[,_' ](?=\d{3}(?!\d))//gr : $given);
    return 0 if @given != @wanted;
    for (0 .. $#given) {
        my ($number, $kind, $factor) = @{ $given[$_] };
        my ($wants, $asked, $worth) = @{ $wanted[$_] };
        return 0 if $kind && $asked && $kind ne $asked;
        my @means = $kind && $asked ? $number * $factor : $kind eq 'bytes' ? $number * $factor : $number * $worth;
        push @means, $number if !$kind && $asked eq 'bytes';
        return 0 if !grep { abs($_ - $wants * $worth) <= abs($wants * $worth) * ($within + 1e-9) } @means;
    }
    return 1;
}

sub judge_answer {
    my ($ex, $file, %option) = @_;
    my $text = read_file($file);
    my $given = answer_of($text);
    return failed(no_answer($ex, $text), 'no answer') if $given eq '';
    my ($percent) = ($ex->{within} // '0') =~ /([\d.]+)/;
    if (same_answer($given, $ex->{answer}, $percent / 100)) {
        my $seen = $option{quick} ? '' : proof($ex, %option);
        return { solved => 1, text => $seen eq '' ? '' : "What a run says:\n$seen" };
    }
    for (@{ $ex->{wrong} }) {
        return failed("No, not $given. $_->{says}") if same_answer($given, $_->{name}, $percent / 100);
    }
    my ($came, $asked) = map { scalar numbers($_) } $given, $ex->{answer};
    return failed("No, not $given. This has $came numbers, and one is asked for. Write that one only, such as 2.5 (with a point).")
        if $asked == 1 && $came > 1;
    return failed("No, not $given. " . ($ex->{otherwise} // 'The hints go step by step: HINT=1.'));
}

# What the exercise's own run prints, in which the answer is seen; '' where it has none.
sub proof {
    my ($ex, %option) = @_;
    my $dir = $option{dir};
    if ($ex->{check} ne '' && $backend eq 'cpu') {
        my ($harness, $check) = build_checker($ex, $dir);
        link_program("$dir/program", "$dir/log", $harness, $check) == 0 or die read_file("$dir/log");
        my ($run) = runs($ex, %option);
        local %ENV = (%ENV, %{ $run->{env} });
        run_limited(mpirun() . " -np $run->{n} '$dir/program'", $dir, "$dir/out", "$dir/err", 20, 0);
    } elsif ($ex->{proof} && $backend eq 'cpu') {
        my $command = $ex->{proof} =~ s/\bmpirun\b/mpirun()/er =~ s/\{(\S+)\}/build_lesson($1, $dir)/er;
        run_limited("/bin/sh -c " . quoted($command), $top, "$dir/out", "$dir/err", 30, 0);
    } else {
        return '';
    }
    return readable(read_file("$dir/out") . read_file("$dir/err"));
}

1;
