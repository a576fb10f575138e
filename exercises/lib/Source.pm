# What an exercise is: its source, as README.md in the folder above describes it, and the files that are made of it.
package Source;
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use Vary qw(vary);
use Exporter qw(import);

our @EXPORT_OK = qw(is_starter lessons load_all parse plain quoted read_file readme_line starter_path variant write_file %kinds $root $top);

our $top  = dirname(dirname(dirname(abs_path(__FILE__))));
our $root = $ENV{EXERCISE_ROOT} || $top; # where the reader's files lie; a test has its own
our %kinds = (complete => 'add what is missing', repair => 'find the mistake', predict => 'answer a question',
    build => 'write it yourself', fast => 'the same result in less time');

sub read_file {
    my ($name) = @_;
    open my $in, '<', $name or return '';
    local $/;
    return <$in> // '';
}

sub write_file {
    my ($name, $text) = @_;
    open my $out, '>', $name or die "$name: $!\n";
    print $out $text;
    close $out or die "$name: $!\n";
}

# A text without what editors and Windows add: a mark at its beginning, and returns at the ends of lines.
sub plain { return $_[0] =~ s/^\xef\xbb\xbf//r =~ s/\r\n?/\n/gr }

# Whether a text is still the starter, but for blanks at the ends of lines and empty lines at its end.
sub is_starter {
    my ($ex, $text) = @_;
    my ($it, $starter) = map { s/[ \t]+$//gmr =~ s/\n+\z//r } plain($text), variant($ex, 'starter');
    return $it eq $starter;
}

# A word for the shell.
sub quoted { return "'" . $_[0] =~ s/'/'\\''/gr . "'" }

# Reads exercises/NN.M-name.c or .txt: see README.md. Dies with the line that is wrong.
sub parse {
    my ($path) = @_;
    my ($number, $name, $ending) = basename($path) =~ /^(\d\d\.\d+)-([\w-]+)\.(c|cu|txt)$/
        or die "$path: not named NN.M-name.c, .cu or .txt\n";
    my %ex = (number => $number, name => $name, ending => $ending, source => $path,
        hint => [], wrong => [], right => [], file => [], check => '', setup => 'comm', run => []);
    my ($section, $last, $choice, $line) = ('head', undef, undef, 0);
    for (split /^/, vary(plain(read_file($path)))) {
        $line++;
        my $where = "$path:$line";
        if (!m{^\s*//: ?(.*?)\s*$}) {
            if ($section eq 'check') {
                $ex{check} = "#line $line \"check-$number.c\"\n" if $ex{check} eq '';
                $ex{check} .= $_;
            } elsif ($section eq 'file') {
                $choice ? ($choice->{now} .= $_) : push @{ $ex{file} }, $_;
            } elsif (/\S/) {
                die "$where: before `//: file` every line begins with //:\n";
            }
            next;
        }
        my $said = $1;
        if ($section eq 'head' && $said =~ /^ +(\S.*)/ && $last) {
            $$last .= " $1";
        } elsif ($said =~ /^(file|check)$/) {
            $section = $1;
        } elsif ($section eq 'head' && $said =~ /^(\w+) (.+)/) {
            $last = head_line(\%ex, $1, $2, $where);
        } elsif ($section eq 'file' && $said eq 'starter') {
            $choice = { starter => '' };
            push @{ $ex{file} }, $choice;
            chosen($choice, 'starter');
        } elsif ($section eq 'file' && $said eq 'solution' && $choice) {
            chosen($choice, 'solution');
        } elsif ($section eq 'file' && $choice && $said =~ /^wrong ([\w-]+)(?:: (.+))?$/) {
            chosen($choice, $1);
            push @{ $ex{wrong} }, { name => $1, says => $2 } if $2;
        } elsif ($section eq 'file' && $choice && $said =~ /^right ([\w-]+)$/) {
            chosen($choice, $1);
            push @{ $ex{right} }, $1;
        } elsif ($section eq 'file' && $said eq 'end' && $choice) {
            chosen($choice, undef);
            $choice = undef;
        } else {
            die "$where: what is `//: $said` here?\n";
        }
    }
    complete_or_die(\%ex);
    return \%ex;
}

# What follows in a block goes to the alternative of this name.
sub chosen {
    my ($choice, $name) = @_;
    $choice->{ $choice->{name} } = delete $choice->{now} if defined $choice->{name};
    $choice->{name} = $name;
    $choice->{now}  = '' if defined $name;
    delete $choice->{name} if !defined $name;
}

# One line of the head; a reference to the text that a next line would continue.
sub head_line {
    my ($ex, $key, $value, $where) = @_;
    if ($key eq 'hint' || $key eq 'run') {
        push @{ $ex->{$key} }, $value;
        return \$ex->{$key}[-1];
    }
    if ($key eq 'wrong' && $value =~ m{^([\w-]+) (s/.*/[gs]*): (.+)$}) {
        push @{ $ex->{wrong} }, { name => $1, change => $2, says => $3 };
        return \$ex->{wrong}[-1]{says};
    }
    if ($key eq 'wrong' && $value =~ /^(.+?): (.+)$/) {
        push @{ $ex->{wrong} }, { name => $1, says => $2 };
        return \$ex->{wrong}[-1]{says};
    }
    $key =~ /^(kind|title|trains|learned|why|ranks|clock|setup|calls|only|no|starter|build|seconds|answer|within|otherwise|proof|seen)$/
        or die "$where: what is `$key`?\n";
    die "$where: `$key` twice\n" if defined $ex->{$key} && $key ne 'setup';
    $ex->{$key} = $value;
    return \$ex->{$key};
}

sub complete_or_die {
    my ($ex) = @_;
    my $path = $ex->{source};
    my @missing = grep { !defined $ex->{$_} } qw(kind title trains learned why),
        $ex->{ending} eq 'txt' ? 'answer' : ('ranks', 'starter');
    die "$path: no `//: $_`\n" for @missing;
    die "$path: kind $ex->{kind} is none of " . join(' ', sort keys %kinds) . "\n" if !$kinds{ $ex->{kind} };
    die "$path: three hints, not " . @{ $ex->{hint} } . "\n" if @{ $ex->{hint} } != 3;
    die "$path: at least three wrong answers\n" if @{ $ex->{wrong} } < 3;
    die "$path: setup is comm, mpi or program\n" if $ex->{setup} !~ /^(comm|mpi|program)$/;
    ($ex->{counts}, $ex->{also}) = map { [split] } (split /\|/, $ex->{ranks} // '', 2), '', '';
    $ex->{lesson} = substr $ex->{number}, 0, 2;
}

# All sources of a folder, in order.
sub load_all {
    my ($folder) = @_;
    my @all = map { parse($_) } glob("'$folder'/[0-9][0-9].*-*.c"), glob("'$folder'/[0-9][0-9].*-*.cu"), glob("'$folder'/[0-9][0-9].*-*.txt");
    return sort { $a->{lesson} <=> $b->{lesson} || rank_of($a) <=> rank_of($b) } @all;
}

sub rank_of { return (split /\./, $_[0]{number})[1] }

# Where the file lies that the reader edits; undef if there is no such lesson.
sub starter_path {
    my ($ex) = @_;
    my ($lesson) = glob "'$root'/$ex->{lesson}-*/";
    return $lesson && $lesson . 'exercises/' . rank_of($ex) . "-$ex->{name}.$ex->{ending}";
}

# The exercises of each lesson.
sub lessons {
    my (%of, @order);
    for (@_) {
        push @order, $of{ $_->{lesson} } = [] if !$of{ $_->{lesson} };
        push @{ $of{ $_->{lesson} } }, $_;
    }
    return @order;
}

# What the lesson's README says of it.
sub readme_line {
    my ($ex) = @_;
    my ($file) = starter_path($ex) =~ m{([^/]+/[^/]+)$};
    return "- [$ex->{number} $ex->{title}]($file) ($ex->{kind}): $ex->{trains}\n";
}

# The text of the reader's file: as it is at first ('starter'), solved ('solution'), or with one
# of the other answers, right or wrong.
sub variant {
    my ($ex, $name) = @_;
    my $what = "$ex->{number} $ex->{title} ($ex->{kind})";
    my $again = "make exercise N=$ex->{number}";
    if ($ex->{ending} eq 'txt') {
        my $answer = $name eq 'starter' ? '' : $name eq 'solution' ? $ex->{answer} : $name;
        return "$what\n" . join('', @{ $ex->{file} })
            . "\nWrite your answer after the colon, then: $again\n\nanswer: $answer\n"
            =~ s/ +$//mr;
    }
    my ($wrong) = grep { $_->{name} eq $name } @{ $ex->{wrong} };
    my $base = $wrong && $wrong->{change} ? 'solution' : $name;
    my $text = join '', map { ref $_ ? $_->{$base} // $_->{solution} // '' : $_ } @{ $ex->{file} };
    if ($wrong && $wrong->{change}) {
        my ($from, $to, $flags) = $wrong->{change} =~ m{^s/((?:\\.|[^/\\])*)/((?:\\.|[^/\\])*)/([gs]*)$}
            or die "$ex->{source}: $wrong->{change} is no change\n";
        $from = $flags =~ /s/ ? qr/$from/s : qr/$from/;
        $to =~ s/\\n/\n/g;
        my $put = sub { my @g = @_; $to =~ s{\\(.)|\$(\d)}{defined $1 ? $1 : $g[$2 - 1]}ger };
        my $hits = $flags =~ /g/ ? $text =~ s/$from/$put->($1, $2, $3)/ge : $text =~ s/$from/$put->($1, $2, $3)/e;
        die "$ex->{source}: $wrong->{name} changes nothing\n" if !$hits;
    }
    return "// $what\n// $again\n$text";
}

1;
