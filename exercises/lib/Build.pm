# Building: the hidden half of an exercise, the frame around it, and what a reader has written.
package Build;
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use File::Basename qw(basename);
use File::Path qw(make_path);
use Source qw(quoted read_file write_file $top);
use Run qw(mpirun run_limited $backend);
use Exporter qw(import);

our @EXPORT_OK = qw(build_checker build_lesson compile_flags compile_yours link_program preprocess);

# Flags for the compiler and the linker, which make says; and what MPI's compiler starts. It is started
# itself, for the wrapper takes as long as linking does.
my ($mpicc, $compile, $link, $cc, $mpi);
sub compile_flags {
    ($mpicc, $compile, $link) = @ENV{qw(MPICC EXERCISE_COMPILE EXERCISE_LINK)};
    if (!$compile) {
        my @said = split /\n/, `make -s --no-print-directory -C '$top' BACKEND=$backend exercise-flags`;
        die "make exercise-flags says nothing\n" if @said < 3;
        ($mpicc, $compile, $link) = @said[-3 .. -1];
    }
    my ($shown) = split /\n/, `$mpicc -show 2>/dev/null` // '';
    ($cc, $mpi) = ($shown // '') =~ /^(\S+)( .*)$/ ? ($1, $2) : ($mpicc, '');
    make_path("$top/build/exercises");
    lesson_header();
    mpirun();
}

# Runs the compiler, everything it says to a file; its exit code.
sub quietly {
    my ($arguments, $out, $memory) = @_;
    my ($code, $why) = run_limited("$cc $arguments $mpi", '.', $out, $out, 60, $memory // 0);
    write_file($out, "$why\n") if $why;
    return $code;
}

# The reader's file as an object; the compiler's exit code, and what it says goes to a file.
sub compile_yours {
    my ($ex, $file, $object, $log, $memory) = @_;
    return compile_kernels($file, $object, $log, $memory) if $ex->{ending} eq 'cu';
    my $main = $ex->{setup} eq 'program' ? '-Dmain=exercise_main' : '';
    return quietly(lesson_header() . " $compile $main -c '$file' -o '$object'", $log, $memory);
}

# A file with kernels, by the compiler that has them. It is C++.
my $kernels = '';
sub compile_kernels {
    my ($file, $object, $log, $memory, $how) = @_;
    # Without MPI's C++ interface, which would make the file depend on the C++ library's streams.
    my @flags = ($how // '-c -g -lineinfo', qw(-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX), "-I'$top/exercises/include'", "-I'$top/common'", $mpi =~ /-I\S+/g);
    push @flags, map { "-I'$_'" } $compile =~ /-(?:I|isystem) ?([^ ']+)/g if $backend ne 'cpu'; # of CUDA and NCCL
    my $by = $backend eq 'cpu' ? "env MPICC='$mpicc' '$top/kernels/cpu-nvcc'" : 'nvcc';
    my ($code, $why) = run_limited("$by @flags '$file' -o '$object'", '.', $log, $log, 120, $memory // 0);
    write_file($log, "$why\n") if $why;
    $kernels = '-Wl,--no-as-needed -lstdc++';
    return $code;
}

# The same as the preprocessor leaves it, and the folders in which it finds headers.
sub preprocess {
    my ($ex, $file, $out) = @_;
    my $main = $ex->{setup} eq 'program' ? '-Dmain=exercise_main' : '';
    my $flags = "-I'$top/exercises/include' $compile $main";
    $ex->{ending} eq 'cu' ? compile_kernels($file, $out, "$out.log", 0, '-E')
        : quietly("$flags -E -fno-working-directory '$file'", $out);
    my @folders = "$flags $mpi" =~ /(?:^| )-(?:I|isystem) *'?([^' ]+)/g;
    return (read_file($out), @folders, "$top/cpu/include", "$top/kernels/include", '/usr/include', '/usr/lib', '/usr/local/include');
}

sub link_program {
    my ($program, $log, @objects) = @_;
    return quietly("@{[map { quoted($_) } @objects]} $link $kernels -Wl,-z,noexecstack -o '$program'", $log);
}

# A lesson's program, built in a folder; its name for the shell.
sub build_lesson {
    my ($name, $dir) = @_;
    my $program = "$dir/" . basename($name);
    quietly("$compile '$top/$name.c' $link -o '$program'", "$dir/log") == 0 or die read_file("$dir/log");
    return quoted($program);
}

# The frame and the hidden half of an exercise as objects; made again when a source has changed.
sub build_checker {
    my ($ex, $dir) = @_;
    make_path($dir);
    my $header  = lesson_header();
    my $flags   = md5_hex("$cc $compile $header");
    my $harness = "$top/build/exercises/harness-" . substr(md5_hex($flags, map { read_file($_) }
        "$top/exercises/harness.c", "$top/exercises/harness.h"), 0, 12) . '.o';
    compile_once("$top/exercises/harness.c", $harness, "$header " . strict());
    my %setups = (comm => 0, mpi => 1, program => 2);
    my $text = "#include \"harness.h\"\n#include <unistd.h>\nconst int check_setup = $setups{ $ex->{setup} };\n$ex->{check}";
    my $object = "$dir/check-$ex->{number}-" . substr(md5_hex($flags, $text, basename($harness)), 0, 12) . '.o';
    if (!-f $object) {
        write_file("$dir/check.c", $text);
        compile_once("$dir/check.c", $object, "$header -I'$top/exercises' " . strict());
    }
    return ($harness, $object);
}

# Where lesson.h is found first: the one in exercises/include, which gcc reads once for all (GCC's manual, "Using
# Precompiled Headers").
my $header;
sub lesson_header {
    return $header //= do {
        my @sources = map { glob "'$top/$_'/*.h" } 'common', 'exercises/include';
        my $dir = "$top/build/exercises/" . substr(md5_hex("$cc $compile", map { read_file($_) } @sources), 0, 12);
        my $flags = "-I'$top/exercises/include'";
        make_path($dir);
        compile_once("$top/exercises/include/lesson.h", "$dir/lesson.h.gch", "$flags -x c-header") if `$cc --version 2>&1` !~ /clang/;
        "-I'$dir' $flags";
    };
}

# The tests take no warning of the course's own.
sub strict { return $ENV{EXERCISE_STRICT} ? '-Werror' : '' }

sub compile_once {
    my ($source, $object, $flags) = @_;
    return if -f $object;
    my $new = "$object.$$";
    my $said = "$new.log";
    my $code = quietly("$flags $compile -c '$source' -o '$new'", $said);
    my $text = read_file($said);
    unlink $said;
    die "$source does not compile:\n$text" if $code != 0;
    rename $new, $object or die "$object: $!\n";
}

1;
