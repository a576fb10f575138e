# The grades: a table, and the same for programs: JSON, JUnit's XML, CSV, and Gradescope's results.json.
package Report;
use strict;
use warnings;
use Encode ();
use JSON::PP ();
use POSIX ();
use Source qw(write_file $top);
use Run qw($backend);
use Exporter qw(import);

our @EXPORT_OK = qw(grades not_graded reason);

my (%of, @numbers, @students, %left_out);

# Writes all forms into a folder and returns the table. The submissions are { student, ex, unchanged, result }.
sub grades {
    my ($out, %all) = @_;
    (%of, @numbers, @students) = ();
    @numbers = @{ $all{numbers} };
    @students = sort @{ $all{students} };
    $of{ $_->{student} }{ $_->{ex}{number} } = $_ for @{ $all{submissions} };
    my $head = head(%all);
    my $table = "$head\n\n" . table() . ($all{namesakes} ? "(A number after a name is Moodle's: several have that name.)\n" : '') . class();
    %left_out = ();
    push @{ $left_out{ $_->{student} } }, $_ for @{ $all{not_graded} };
    $table .= "\n" . not_graded(@{ $all{not_graded} }) if @{ $all{not_graded} };
    my @wrong = grep { $_->{result} && !$_->{result}{solved} && !$_->{unchanged} } @{ $all{submissions} };
    write_file("$out/grades.txt", $table . "\nWhat was wrong:\n"
        . join '', map { "  $_->{student} $_->{ex}{number}: " . reason($_->{result}) . "\n" } @wrong);
    write_file("$out/grades.json", JSON::PP->new->pretty->canonical->encode({ graded => $head,
        exercises => [ map { exercise_summary($_) } @numbers ], students => [ map { student($_) } @students ],
        not_graded => [ map { "$_->{path} ($_->{problem})" } @{ $all{not_graded} } ] }));
    write_file("$out/grades.xml", junit());
    write_file("$out/grades.csv", csv());
    write_file($all{gradescope}, gradescope($head, @{ $all{not_graded} })) if $all{gradescope};
    return $table;
}

# The files that are not graded, each with the reason.
sub not_graded {
    return @_ ? join '', "Not graded:\n", map { "  $_->{path} ($_->{problem})\n" } @_ : '';
}

# When, with what, and under which limits.
sub head {
    my (%all) = @_;
    my ($version) = `cat '$top/check/nccl-check'` =~ /^version=(.*)/m;
    my $commit = `git -C '$top' describe --always --dirty 2>/dev/null`;
    chomp $commit;
    $commit = $commit eq '' ? '' : " ($commit)";
    return 'Graded ' . POSIX::strftime('%Y-%m-%d %H:%M', localtime) . " by the course's version $version$commit, "
        . ($backend eq 'cpu' ? 'CPU build' : 'on GPUs') . "; a run may take $all{limit}{seconds} s of processor time and $all{limit}{memory} MiB.";
}

# What went wrong, in a line: the compiler's error itself, or the first lines of the text.
sub reason {
    my ($result) = @_;
    my @lines = map { s/^\s+|\s+$//gr } split /\n/, $result->{text} // '';
    if (($result->{kind} // '') eq 'does not compile') {
        my ($error) = grep { /\berror: |undefined reference|multiple definition|relocation truncated/ } @lines;
        return "$lines[0] $error" if $error;
    }
    return join ' ', grep { defined && $_ ne '' } @lines[0, 1];
}

sub points {
    my ($student) = @_;
    return scalar grep { $_->{result}{solved} } values %{ $of{$student} };
}

# One word for what came of an exercise.
sub kind {
    my ($job) = @_;
    return !$job ? 'not handed in' : $job->{unchanged} ? 'unchanged' : $job->{result}{solved} ? 'solved' : $job->{result}{kind} // 'unknown';
}

# --- For people ------------------------------------------------------------------------------

sub width { return length Encode::decode('UTF-8', $_[0]) }

sub table {
    my ($widest) = sort { $b <=> $a } 8, map { width($_) } @students;
    my $text = ' ' x $widest . join('', map { sprintf ' %5s', $_ } @numbers) . "  solved\n";
    my %mark = (solved => 1, unchanged => '=', 'not handed in' => '-');
    for my $student (@students) {
        my @marks = map { $mark{ kind($of{$student}{$_}) } // 0 } @numbers;
        $text .= sprintf "%s%s  %d of %d\n", $student . ' ' x ($widest - width($student)), join('', map { sprintf ' %5s', $_ } @marks),
            points($student), scalar @numbers;
    }
    return $text . "(1: solved, 0: not, =: unchanged, -: not handed in)\n";
}

# How an exercise went: handed in (and not as it was handed out), solved, and what was wrong how often.
sub exercise_summary {
    my ($number) = @_;
    my ($solved, $handed, $title, %kinds) = (0, 0, '');
    for my $student (@students) {
        my $job = $of{$student}{$number} or next;
        $title = $job->{ex}{title};
        next if $job->{unchanged};
        $handed++;
        $job->{result}{solved} ? $solved++ : $kinds{ kind($job) }++;
    }
    return { number => $number, title => $title, handed_in => $handed, solved => $solved, wrong => \%kinds };
}

sub class {
    my $text = sprintf "\n%-5s %9s %6s  %s\n", '', 'handed in', 'solved', 'what was wrong';
    for my $it (map { exercise_summary($_) } @numbers) {
        my %wrong = %{ $it->{wrong} };
        my $kinds = join ', ', map { "$_ $wrong{$_}" } sort { $wrong{$b} <=> $wrong{$a} || $a cmp $b } keys %wrong;
        $text .= sprintf "%-5s %9d %6d  %s\n", $it->{number}, $it->{handed_in}, $it->{solved}, $kinds;
    }
    return $text;
}

# --- For programs ----------------------------------------------------------------------------

sub student {
    my ($student) = @_;
    my @results;
    for my $number (@numbers) {
        my $job = $of{$student}{$number};
        push @results, !$job ? { exercise => $number, solved => JSON::PP::false, handed_in => JSON::PP::false } : {
            exercise => $number, handed_in => JSON::PP::true, seconds => $job->{result}{seconds} + 0,
            solved => $job->{result}{solved} ? JSON::PP::true : JSON::PP::false,
            $job->{result}{solved} ? () : (kind => $job->{result}{kind}, reason => reason($job->{result}), text => $job->{result}{text}) };
    }
    return { student => $student, solved => points($student), of => scalar @numbers, results => \@results };
}

sub xml {
    my ($text) = @_;
    my %entity = ('<' => '&lt;', '>' => '&gt;', '&' => '&amp;', '"' => '&quot;');
    $text =~ s/[^\t\n\x20-\xff]/?/g;
    return $text =~ s/([<>&"])/$entity{$1}/gr;
}

sub junit {
    my $text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
    for my $student (@students) {
        my $cases = '';
        my ($failures, $skipped) = (0, 0);
        for my $number (@numbers) {
            my $job = $of{$student}{$number};
            my $kind = kind($job);
            $cases .= sprintf '    <testcase classname="%s" name="%s" time="%s"', xml($student), $number, $job ? $job->{result}{seconds} : 0;
            if ($kind eq 'solved') {
                $cases .= "/>\n";
            } elsif ($kind eq 'not handed in' || $kind eq 'unchanged') {
                $skipped++;
                $cases .= ">\n      <skipped message=\"$kind\"/>\n    </testcase>\n";
            } else {
                $failures++;
                $cases .= sprintf ">\n      <failure message=\"%s\" type=\"%s\">%s</failure>\n    </testcase>\n",
                    xml(reason($job->{result})), xml($kind), xml($job->{result}{text});
            }
        }
        for (@{ $left_out{$student} }) {
            $skipped++;
            $cases .= sprintf "    <testcase classname=\"%s\" name=\"%s\" time=\"0\">\n      <skipped message=\"not graded: %s\"/>\n    </testcase>\n",
                xml($student), xml($_->{path}), $_->{problem};
        }
        $text .= sprintf "  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" skipped=\"%d\">\n%s  </testsuite>\n", xml($student),
            @numbers + @{ $left_out{$student} // [] }, $failures, $skipped, $cases;
    }
    return "$text</testsuites>\n";
}

# A field of CSV (RFC 4180). What a spreadsheet would take for a formula gets a space first.
sub field {
    my ($text) = @_;
    $text =~ s/^(?=[=+\-@\t])/ /;
    return $text =~ /[",\n]/ ? '"' . $text =~ s/"/""/gr . '"' : $text;
}

sub csv {
    my $text = "student,exercise,points,kind,reason\n";
    for my $student (@students) {
        for my $number (@numbers) {
            my $job = $of{$student}{$number};
            my $kind = kind($job);
            my $points = $kind eq 'solved' ? 1 : 0;
            my $reason = $points || !$job || $job->{unchanged} ? '' : reason($job->{result});
            $text .= join(',', map { field($_) } $student, $number, $points, $kind, $reason) . "\n";
        }
        $text .= join(',', map { field($_) } $student, '', 0, 'not graded', "$_->{path}: $_->{problem}") . "\n" for @{ $left_out{$student} };
    }
    return $text;
}

# One student's results as Gradescope reads them, a point for each exercise.
sub gradescope {
    my ($head, @not_graded) = @_;
    my @tests;
    for my $number (@numbers) {
        my $job = $students[0] && $of{ $students[0] }{$number};
        my $kind = kind($job);
        push @tests, { number => $number, name => $job ? "$number $job->{ex}{title}" : $number, max_score => 1,
            score => $kind eq 'solved' ? 1 : 0, status => $kind eq 'solved' ? 'passed' : 'failed',
            output => !$job ? 'not handed in' : $job->{result}{text} // '' };
    }
    return JSON::PP->new->pretty->canonical->encode({ output => join("\n\n", $head, not_graded(@not_graded) || ()), tests => \@tests });
}

1;
