# What was handed in: the files of a folder or an archive, each with its student. Archives are unpacked, also those in
# archives, and names are told as Moodle makes them.
package Handed;
use strict;
use warnings;
use Encode ();
use File::Basename qw(basename dirname);
use File::Find qw(find);
use File::Path qw(make_path);
use IO::Uncompress::Unzip qw($UnzipError);
use Source qw(quoted);
use Run qw(run_limited);
use Exporter qw(import);

our @EXPORT_OK = qw(handed_in);

my $archive = qr/\.(?:zip|tar|tgz|tar\.gz|tbz2?|tar\.bz2|txz|tar\.xz)$/i;
my $lesson  = qr/^\d\d-[a-z0-9-]+$/;
my ($work, $count, @files, %students, %numbers);

# The files of a folder or an archive, each { student, path, name, file, time, problem }, and all students, also those
# without files; and whether some are told apart by Moodle's number. What is unpacked goes to a folder. With a name,
# all is that student's.
sub handed_in {
    my ($from, $unpacked, $one) = @_;
    ($work, $count, @files, %students, %numbers) = ($unpacked, 0);
    if (-d $from) {
        look($from, $one, '', basename($from));
    } else {
        open_archive($from, basename($from), $one, 1);
    }
    $_->{student} = full_name($_->{student}) for @files;
    my %names = map { full_name($_) => 1 } keys %students;
    return (\@files, [sort keys %names], scalar grep { several($_) } keys %numbers);
}

# One file; what has a problem can't be graded.
sub add {
    my ($student, $path, $name, $file, $problem) = @_;
    $students{$student} = 1;
    push @files, { student => $student, path => display($path), name => $name, file => $file, time => (stat $file)[9] // 0, problem => $problem };
}

# A folder: those below it are students', unless all is one student's.
sub look {
    my ($dir, $student, $shown, $owner) = @_;
    my @archives;
    find({ no_chdir => 1, wanted => sub {
        return if $_ eq $dir;
        my $path = substr $_, length($dir) + 1;
        my $name = basename($_);
        # What make builds in a clone, and what systems put beside one's files.
        my $built = $name eq 'build' && -d && -e dirname($_) . '/Makefile';
        $File::Find::prune = 1 if $built || -d && $name =~ /^(?:\.git|__MACOSX)$/;
        return if $name =~ /^(?:\.git|__MACOSX|\.DS_Store|\._.*)$/;
        if (-d && !-l && !$built) {
            my $is_student = !defined $student && $path =~ m{^[^/.][^/]*$} && $path !~ $lesson;
            $students{ person($path, $dir) } = 1 if $is_student;
            return;
        }
        my ($first) = $path =~ m{^([^/]+)/};
        my $whose = $student;
        # Moodle's: Anna Rossi_12345_assignsubmission_file_1-share.c, where there are no folders.
        $whose //= person($1, $dir) if !defined $first && $name =~ s/^(.+?_\d+_assignsubmission_[a-z]+_)(?=.)//;
        $whose //= person($first, $dir) if defined $first && !($first =~ $lesson && $path =~ m{^[^/]+/exercises/});
        my $problem = -l ? 'a link' : -d ? 'what make builds' : !-f ? 'no file' : '';
        return push @archives, [$_, "$shown$path", $whose] if !$problem && $name =~ $archive;
        add($whose // $owner, "$shown$path", $name, $_, $problem);
    } }, $dir);
    open_archive(@$_) for @archives;
}

# An archive is a student's who hands in a folder; or everybody's, if it is all there is, or Moodle has made it.
sub open_archive {
    my ($file, $shown, $student, $everybodys) = @_;
    my $dir = "$work/" . ++$count;
    make_path($dir);
    my ($problem, @left_out) = $count > 2000 ? 'there are too many archives' : $file =~ /\.zip$/i ? unzip($file, $dir) : untar($file, $dir);
    my $owner = person(basename($file) =~ s/$archive//r, dirname($file));
    my @inside = glob "@{[quoted($dir)]}/*";
    $everybodys ||= grep { /_assignsubmission_/ } @inside;
    $student = $owner if !defined $student && ($problem || !$everybodys);
    $students{$student} = 1 if defined $student;
    add($student // (m{^([^/.][^/]*)/} ? person($1, $dir) : $owner), "$shown: $_", basename($_), $file, 'its name cannot be used') for @left_out;
    return add($student, $shown, basename($file), $file, $problem) if $problem;
    look($dir, $student, "$shown: ", $owner);
}

# What is wrong with it, or '', and the files that can't be made.
sub unzip {
    my ($file, $dir) = @_;
    my @left_out;
    my $zip = IO::Uncompress::Unzip->new($file, Transparent => 0) or return 'it cannot be unpacked';
    my ($status, $bytes, $members) = (1, 0, 0);
    for (; $status > 0; $status = $zip->nextStream) {
        my $name = $zip->getHeaderInfo->{Name} // '';
        my @parts = grep { $_ ne '' && $_ ne '.' } split m{[/\\]}, $name;
        return 'it has too many files' if ++$members > 20000;
        my $to = join '/', $dir, @parts;
        my $usable = @parts && !grep { $_ eq '..' } @parts;
        my $folder = $name =~ m{[/\\]$};
        make_path($folder ? $to : dirname($to), { error => \my $errors }) if $usable;
        next if $folder;
        my $out;
        if (!$usable || !open $out, '>', $to) {
            push @left_out, $name;
            next;
        }
        while (($status = $zip->read(my $part)) > 0) {
            print $out $part;
            $bytes += length $part;
            return 'it is larger than 500 MB' if $bytes > 5e8;
        }
        close $out;
        my $time = $zip->getHeaderInfo->{Time};
        utime $time, $time, $to if $time;
        last if $status < 0;
    }
    return ($status < 0 ? 'it cannot be unpacked' : '', @left_out);
}

# No file of more than 200 MB; tar itself leaves out names that lead elsewhere.
sub untar {
    my ($file, $dir) = @_;
    my ($code) = run_limited('sh -c ' . quoted('ulimit -f 400000; exec tar -x --no-same-owner --no-same-permissions -f '
        . quoted($file) . ' -C ' . quoted($dir)), '/', "$dir.log", "$dir.log", 60, 0);
    system 'chmod', '-R', 'u+rwX', $dir;
    return $code == 0 ? '' : 'it cannot be unpacked';
}

# A student, from the name of a folder or an archive, and where that lies: the name, and Moodle's number in a second line.
sub person {
    my ($name, $dir) = @_;
    return display($name) if $name !~ s/_(\d+)_assignsubmission_[a-z]+_?$//;
    $numbers{ display($name) }{$dir}{$1} = 1;
    return display($name) . "\n$1";
}

# Whether a folder or an archive has several students of a name; they get Moodle's numbers in tables.
sub several { return scalar grep { keys %$_ > 1 } values %{ $numbers{ $_[0] } // {} } }

sub full_name {
    my ($name, $number) = split /\n/, $_[0];
    return defined $number && several($name) ? "$name ($number)" : $name;
}

# A file's name as text: what is not UTF-8 was Latin-1.
sub display {
    my ($name) = @_;
    my $text = eval { Encode::decode('UTF-8', my $copy = $name, Encode::FB_CROAK) } // Encode::decode('latin1', $name);
    return Encode::encode('UTF-8', $text =~ s/[[:cntrl:]]/?/gr);
}

1;
