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
my ($work, $count, @files, %students);

# The files of a folder or an archive, each { student, path, name, file, time }, and all students, also those without
# files. What is unpacked goes to a folder. With a name, all is that student's.
sub handed_in {
    my ($from, $unpacked, $one) = @_;
    ($work, $count, @files, %students) = ($unpacked, 0);
    if (-d $from) {
        look($from, $one, '', basename($from));
    } else {
        open_archive($from, basename($from), $one, 1);
    }
    return (\@files, [sort keys %students]);
}

# A folder: those below it are students', unless all is one student's.
sub look {
    my ($dir, $student, $shown, $owner) = @_;
    my @archives;
    find({ no_chdir => 1, wanted => sub {
        return if $_ eq $dir;
        my $path = substr $_, length($dir) + 1;
        if (-d) {
            $File::Find::prune = 1 if $path =~ m{(?:^|/)(?:\.git|__MACOSX|build)$} || -l;
            my $is_student = !defined $student && $path =~ m{^[^/.][^/]*$} && $path !~ $lesson && !$File::Find::prune;
            $students{ person($path) } = 1 if $is_student;
            return;
        }
        my $name = basename($_);
        return if !-f || -l || $name =~ /^\./;
        my ($first) = $path =~ m{^([^/]+)/};
        my $whose = $student;
        # Moodle's: Anna Rossi_12345_assignsubmission_file_1-share.c, where there are no folders.
        $whose //= display($1) if !defined $first && $name =~ s/^(.+?)_\d+_assignsubmission_[a-z]+_(?=.)//;
        $whose //= person($first) if defined $first && !($first =~ $lesson && $path =~ m{^[^/]+/exercises/});
        return push @archives, [$_, "$shown$path", $whose] if $name =~ $archive;
        $whose //= $owner;
        $students{$whose} = 1;
        push @files, { student => $whose, path => display("$shown$path"), name => $name, file => $_, time => (stat)[9] };
    } }, $dir);
    open_archive(@$_) for @archives;
}

# An archive is a student's who hands in a folder; or everybody's, if it is all there is, or Moodle has made it.
sub open_archive {
    my ($file, $shown, $student, $everybodys) = @_;
    return if ++$count > 2000;
    my $dir = "$work/$count";
    make_path($dir);
    my $problem = $file =~ /\.zip$/i ? unzip($file, $dir) : untar($file, $dir);
    my $name = basename($file) =~ s/$archive//r;
    if ($problem ne '') {
        $student //= person($name);
        $students{$student} = 1;
        push @files, { student => $student, path => display($shown) . " ($problem)", name => basename($file), file => $file, time => 0 };
        return;
    }
    my @inside = glob "@{[quoted($dir)]}/*";
    $everybodys ||= grep { /_assignsubmission_/ } @inside;
    $student = person($name) if !defined $student && !$everybodys;
    look($dir, $student, "$shown: ", person($name));
}

sub unzip {
    my ($file, $dir) = @_;
    my $zip = IO::Uncompress::Unzip->new($file, Transparent => 0) or return 'it cannot be unpacked';
    my ($status, $bytes, $members) = (1, 0, 0);
    for (; $status > 0; $status = $zip->nextStream) {
        my $name = $zip->getHeaderInfo->{Name} // '';
        my @parts = grep { $_ ne '' && $_ ne '.' } split m{[/\\]}, $name;
        return 'it has too many files' if ++$members > 20000;
        next if !@parts || $name =~ m{[/\\]$} || grep { $_ eq '..' } @parts;
        my $to = join '/', $dir, @parts;
        make_path(dirname($to));
        open my $out, '>', $to or next;
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
    return $status < 0 ? 'it cannot be unpacked' : '';
}

# No file of more than 200 MB; tar itself leaves out names that lead elsewhere.
sub untar {
    my ($file, $dir) = @_;
    my ($code) = run_limited('sh -c ' . quoted('ulimit -f 400000; exec tar -x --no-same-owner --no-same-permissions -f '
        . quoted($file) . ' -C ' . quoted($dir)), '/', "$dir.log", "$dir.log", 60, 0);
    system 'chmod', '-R', 'u+rwX', $dir;
    return $code == 0 ? '' : 'it cannot be unpacked';
}

# A student's name, from that of a folder or an archive.
sub person { return display($_[0] =~ s/_\d+_assignsubmission_[a-z]+_?$//r) }

# A file's name as text: what is not UTF-8 was Latin-1.
sub display {
    my ($name) = @_;
    my $text = eval { Encode::decode('UTF-8', my $copy = $name, Encode::FB_CROAK) } // Encode::decode('latin1', $name);
    return Encode::encode('UTF-8', $text =~ s/[[:cntrl:]]/?/gr);
}

1;
