#!/usr/bin/env perl
# What the READMEs show is what one gets: their commands are run, their code is looked up in
# the lessons, their links and the files and make targets they name must exist. Prints TAP.
#
#     tests/pages/readme.t [-v] [README...]     only these (README.md, cpu/README.md, …); -v shows
#                                         what the commands printed
#
# How to write a README:
#
#   ```console   Commands after "$ ", each followed by what it prints. They are run by bash, in
#                the README's folder, in a copy of the course built with BACKEND=cpu; a `cd` or
#                `export` lasts until the block ends, `\` at a line's end continues it. Compared
#                are first stdout, then stderr, so write them in this order. A command that
#                prints nothing must print nothing. (Of the lessons' pictures only the first,
#                that of lesson 05, is drawn; with ALL=yes all are.)
#                  …     alone on a line: any lines, or none; within a line: any text
#                  vm    the name of the host
#                What mpirun adds after a failure, between two lines of dashes or after
#                "[host:process]", is left out, unless the block shows a line of dashes
#                itself. The exit code must be 0, unless the output shown tells of a failure
#                (NCCL CHECK, FAILED, usage, error, …) or the next command is `echo $?`.
#   ```sh        Commands that a test cannot run (sbatch, git clone, apt-get, GPUs): not run,
#                but make targets, files, scripts and programs in them must exist, unless an
#                earlier line makes them (-o mine, git clone … folder). The same holds for
#                `commands` and `paths/of/files` in the text. NAME in a path stands for any.
#   ```c         In a lesson's README, and in a page that lies beside a program of its name:
#                lines of that program, in this order, however they are wrapped; … alone on a
#                line stands for those left out.
#   ```C         C that stands nowhere: an answer to an exercise, for example.
#   ```python    In a lesson's README: the same for the lesson's Python program.
#   ```Python    Python that stands nowhere.
#   tables       Pieces of a `message` in the first column of a table headed "The course says"
#                must stand in the source that prints it; … stands for what varies.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use lib "$Bin/..";
use Programs qw(done_testing ok $top);

our $limit  = 300; # seconds for one block: only what hangs takes them, on however busy a machine
my $verbose = @ARGV && $ARGV[0] eq '-v' && shift @ARGV;
my $work    = tempdir('readme-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $copy    = "$work/course";

# What the caller has set must not change what is printed. Commands are written as one types
# them on a machine with cores enough; here there may be two.
delete @ENV{grep { /^CUDA_/ } keys %ENV};
delete @ENV{qw(MPICC CFLAGS SANITIZE MAKEOVERRIDES INSTALL)};
$ENV{BACKEND}                           = 'cpu';
$ENV{LC_ALL}                            = 'C.UTF-8';
$ENV{OMPI_MCA_rmaps_base_oversubscribe} = 1;

# A point, and what is wrong.
sub none {
    my ($name, @problems) = @_;
    ok(!@problems, $name, @problems);
}

# Of the commands so far; a block's title says how many it took.
sub processor_seconds {
    my (undef, undef, $user, $system) = times;
    return $user + $system;
}

sub read_file {
    return Programs::read_file($_[0], ':encoding(UTF-8)');
}

# --- Reading a README --------------------------------------------------------------------

# Its blocks (kind, first line's number, lines) and its text, blocks blanked out.
sub read_readme {
    my ($path) = @_;
    my %readme = (blocks => [], text => []);
    my ($line, $block, $fence) = (0);
    for (split /\n/, read_file($path)) {
        $line++;
        if ($block && /^\s*\Q$fence\E\s*$/) {
            undef $block;
        } elsif ($block) {
            push @{$block->{lines}}, $_;
        } elsif (/^\s*(```+|~~~+)\s*(\w*)/) {
            ($fence, $block) = ($1, {kind => $2, line => $line + 1, lines => []});
            push @{$readme{blocks}}, $block;
        } else {
            push @{$readme{text}}, $_;
            next;
        }
        push @{$readme{text}}, '';
    }
    return \%readme;
}

# --- Commands that are run ------------------------------------------------------------------

# The commands of a console block, each with the lines it should print.
sub commands {
    my ($block) = @_;
    my (@commands, $open);
    for (@{$block->{lines}}) {
        if ($open) {
            $commands[-1]{command} .= "\n$_";
        } elsif (/^\$ (.*)/) {
            push @commands, {command => $1, expected => []};
        } elsif (@commands) {
            push @{$commands[-1]{expected}}, $_;
        } else {
            return;
        }
        $open = $commands[-1]{command} =~ /\\$/;
    }
    return @commands;
}

my $host = `uname -n`;
chomp $host;
my $short = $host =~ s/\..*//r;

# The pattern for some expected lines: each … is any text, or any lines.
sub pattern {
    my $pattern = '';
    for (@_) {
        if (/^\s*…\s*$/) {
            $pattern .= '(?:[^\n]*\n)*?';
            next;
        }
        my $line = join '[^\n]*', map {
            join "(?:vm|\Q$host\E|\Q$short\E)", map { quotemeta } split /\bvm\b/, $_, -1
        } split /…/, s/\s+$//r, -1;
        $pattern .= "$line\n";
    }
    return $pattern;
}

# What was printed, as it is compared: see above.
sub normal {
    my ($out, $err, @expected) = @_;
    if (!grep { /^-{60,}$/ } @expected) {
        $err =~ s/^-{60,}\n(?:(?!-{60,}\n)[^\n]*\n)*?-{60,}\n//gm;
        $err =~ s/^\[\S+:\d+\] [^\n]*\n//gm;
        $err =~ s/^\d+ total processes [^\n]*\n//gm;
    }
    my $text = join '', map { /\S/ ? s/\n*\z/\n/r : '' } $out, $err;
    $text =~ s/[ \t\r]+$//gm;
    return $text;
}

# What is wrong with one command's output: an empty list if nothing is.
sub output_problems {
    my ($command, $next, $out, $err, $code) = @_;
    my @expected = @{$command->{expected}};
    pop @expected while @expected && $expected[-1] !~ /\S/;
    my $got = normal($out, $err, @expected);
    my @problems;
    if ($got !~ /\A${\pattern(@expected)}\z/) {
        my $lines = 0;
        $lines++ while $lines < @expected && $got =~ /\A${\pattern(@expected[0 .. $lines])}/;
        push @problems, "\$ $command->{command}", $lines < @expected
            ? "does not print: $expected[$lines]" : 'prints more than is shown';
        push @problems, 'it prints:', map { "  $_" } split /\n/, $got;
    }
    my $shown = join "\n", @expected;
    my $foreseen = $next && $next->{command} eq 'echo $?'
        || $shown =~ /NCCL CHECK|FAILED|failed|usage:|ERROR|[Ee]rror|same GPU|not enough/;
    push @problems, "\$ $command->{command}",
        "exit code $code, and nothing shown tells of a failure" if $code != 0 && !$foreseen;
    return @problems;
}

# Runs a console block in a folder: what is wrong with it.
sub console_problems {
    my ($block, $folder) = @_;
    my @commands = commands($block) or return 'a console block begins with "$ command"';
    my ($script, $i) = ("cd '$folder' || exit\nreadme_code=0\n", 0);
    for (@commands) {
        # A shell's $? is what the command before it left, although more happens between.
        $script .= "(exit \$readme_code)\n{ $_->{command}\n} >'$work/$i.out' 2>'$work/$i.err'\n"
            . "readme_code=\$?; echo \$readme_code >'$work/$i.code'\n";
        unlink map { "$work/$i.$_" } qw(out err code);
        $i++;
    }
    open my $file, '>', "$work/block.sh" or die "$work: $!\n";
    print $file $script;
    close $file;
    system "timeout -k 2 $limit bash '$work/block.sh' </dev/null >'$work/block.out' 2>&1";
    for my $n (0 .. $#commands) {
        my $code = read_file("$work/$n.code");
        chomp $code;
        my ($out, $err) = map { read_file("$work/$n.$_") } qw(out err);
        print map { "#     $_\n" } "\$ $commands[$n]{command}", split /\n/, "$out$err" if $verbose;
        return ("\$ $commands[$n]{command}", "does not end, or ends the shell",
                split /\n/, "$out$err" . read_file("$work/block.out")) if $code eq '';
        my @problems = output_problems($commands[$n], $commands[$n + 1], $out, $err, $code);
        return @problems if @problems;
    }
    return;
}

# --- Commands that are not run ------------------------------------------------------------------

# The targets that a folder's Makefile has a rule for.
my %targets;
sub targets {
    my ($folder) = @_;
    return $targets{$folder} //= do {
        my %has;
        for (split /\n\n/, `timeout 300 make -npq -C '$folder' : 2>/dev/null`) {
            my ($target, $needs) = /^([\w.-]+)::?(.*)/m or next;
            $has{$target} = 1 if !/^# Not a target/m && ($needs =~ /\S/ || /recipe to execute/);
        }
        \%has;
    };
}

my ($settings, $variables);

# What a command line names that does not exist. Paths count from the README's folder, from
# the top and, after a cd, from there; made are those that earlier lines make.
sub command_problems {
    my ($line, $folder, $here, $made) = @_;
    my @problems;
    $made->{$1} = 1 while $line =~ m{(?:git clone .*| -o|>)\s(?:\./)?([\w./-]+)}g;
    for (split /&&|\|\||[;|]|\$\(|\)/, $line) {
        my @words = grep { length } split ' ', s/\s#.*//r =~ s/=('[^']*'|"[^"]*")/=…/gr;
        s/^['"]|['"]$//g for @words;
        shift @words while @words && $words[0] =~ /^(?:[A-Z_][A-Z0-9_]*=.*|sudo|env|time|\$)$/;
        next if !@words;
        my $program = shift @words;
        my $plain   = qr{^(?![/~-])[\w./-]+$};
        if ($program eq 'cd') {
            my $to = $words[0] // '';
            if ($made->{$to}) {
                $$here = $copy;
                next;
            }
            next if $to !~ $plain;
            my ($new) = grep { -d $_ } map { "$_/$to" } $$here, $folder, $copy;
            push @problems, "cd $to: no such folder" if !$new;
            $$here = $new if $new;
        } elsif ($program eq 'make') {
            my $in = $$here;
            while (defined(my $word = shift @words)) {
                if ($word eq '-C') {
                    $in = "$in/" . shift @words;
                } elsif ($word =~ /^([A-Z_]+)=/) {
                    push @problems, "make $1=: no Makefile knows $1" if $settings !~ /\b$1\b/;
                } elsif ($word =~ /^[a-z][\w-]*$/) {
                    push @problems, "make $word: no such target"
                        if !grep { targets($_)->{$word} } $in, $copy;
                }
            }
        } elsif ($program =~ m{/}) {
            unshift @words, $program;
        }
        next if $program =~ /^(?:cd|make|git|apt-get|docker|module|echo|export)$/;
        for (@words) {
            my $name = $_;
            next if $made->{s{^\./}{}r} || !/$plain/ || !m{/} || /\bNAME\b/;
            push @problems, "$name does not exist"
                if !grep { -e $_ } (map { "$_/$name" } $$here, $folder, $copy),
                    $name =~ m{^\./} ? glob "$copy/[0-9][0-9]-*/$name" : ();
        }
    }
    return @problems;
}

sub shell_problems {
    my ($lines, $folder) = @_;
    my ($here, %made) = ($folder);
    return map { command_problems($_, $folder, \$here, \%made) }
        split /\n/, join("\n", @$lines) =~ s/\\\n//gr;
}

# Commands, paths and settings in the running text.
sub text_problems {
    my ($readme, $folder) = @_;
    my @problems;
    for (join("\n", @{$readme->{text}}) =~ /(?<!`)`([^`]+)`(?!`)/g) {
        my $here = $folder;
        my $code = s/\s+/ /gr;
        if ($code =~ /^(?:[A-Z_]+=\S* )*(?:make|mpirun|srun|sbatch|source|bash|\.\/\S+)(?: |$)/) {
            push @problems, map { "`$code`: $_" } command_problems($code, $folder, \$here, {});
        } elsif ($code =~ m{^(?!build/)([\w.-]+)/[\w./-]*$} && (-e "$folder/$1" || -e "$copy/$1")) {
            push @problems, "`$code` does not exist" if !-e "$folder/$code" && !-e "$copy/$code";
        } elsif ($code =~ /^(NCCL_CHECK(?:_TIMEOUT)?|(?:NCCL_CPU|CPU)_[A-Z_]+)\b/) {
            push @problems, "`$code`: the CPU build knows no $1" if $variables !~ /"$1"/;
        }
    }
    return @problems;
}

# --- Code, links, messages ------------------------------------------------------------------

# A block of C must be found in the lesson's program, piece after piece, wherever lines break.
sub code_problems {
    my ($block, $source) = @_;
    my $program = read_file($source) =~ s/\s+//gr;
    my $at      = 0;
    for (split /^\s*…\s*$/m, join "\n", @{$block->{lines}}) {
        my $piece = s/\s+//gr;
        my $found = index $program, $piece, $at;
        return 'not in ' . basename($source) . (index($program, $piece) < 0 ? '' : ' at this place')
            . ':', split /\n/ if $found < 0;
        $at = $found + length $piece;
    }
    return;
}

# The anchors that a Markdown file's headings get.
sub anchors {
    my %has;
    for (@{read_readme(shift)->{text}}) {
        next if !/^#+\s+(.*?)\s*$/;
        my $anchor = lc $1;
        $anchor =~ s/[^\w\s-]//g;
        $anchor =~ s/\s/-/g;
        $has{$anchor} = 1;
    }
    return \%has;
}

sub link_problems {
    my ($readme, $path) = @_;
    my @problems;
    for (join("\n", @{$readme->{text}}) =~ /\]\(([^)\s]+)\)/g) {
        next if m{^https?://[\w.-]+(?:/|$)};
        my ($file, $anchor) = /^([^#]*)(?:#(.*))?$/;
        my $target = $file eq '' ? $path : dirname($path) . "/$file";
        if (!-e $target) {
            push @problems, "($_): no such file";
        } elsif (defined $anchor && !anchors($target)->{$anchor}) {
            push @problems, "($_): no such heading";
        }
    }
    return @problems;
}

# The messages in a table headed "The course says", looked up where they are made.
my $messages;
sub message_problems {
    my ($readme) = @_;
    my (@problems, $inside);
    for (@{$readme->{text}}) {
        $inside = /^\|\s*The course says\s*\|/ ? 1 : /^\|/ ? $inside : 0;
        next if !$inside || !/^\|([^|]*)\|/;
        for ($1 =~ /`([^`]+)`/g) {
            my $message = $_;
            for my $piece (map { s/^\s+|\s+$//gr } split /…/) {
                push @problems, "no source says \"$piece\" (`$message`)"
                    if length $piece && index($messages, $piece) < 0;
            }
        }
    }
    return @problems;
}

# errors.md against the list of findings and what was measured: each program shows a finding of the
# kind that stands before it, and those that were run on GPUs ended as the heading says.
sub errors_problems {
    my ($readme, $findings, $results) = @_;
    my (%kind_of, %ends, @problems);
    my $kind = '';
    for (split /\n/, $findings) {
        $kind = lc $1 if /^## (\w+)/;
        $kind_of{$_}{$kind} = 1 for /\[([\w-]+)\]/g;
    }
    while ($results =~ /^\| `([\w-]+)` \| (?:wrong \| )?((?:hangs|exit|error|wrong|crash).*)$/mg) {
        $ends{$1} .= $2;
    }
    my %wanted = (
        'The program hangs'                     => 'hangs',
        'A call returns an error'               => 'error|crash|exit code 1|returned nccl',
        'The program ends, and the data is wrong' => 'exit code 0|wrong data',
    );
    my $heading = '';
    my $rows    = 0;
    for (@{$readme->{text}}) {
        $heading = $1 if /^## (.*)/;
        next if !$wanted{$heading} || !/^\|.*\| ([^|]+?) ?\|$/;
        my $cell = $1;
        next if $cell =~ /^(?:report|---|none: .*)$/;
        for (split /; /, $cell) {
            my ($said, $those) = /^(\w+): (\[.*)$/;
            push @problems, "no kind of report and programs: \"$_\"" and next if !$those;
            $rows++;
            for my $program ($those =~ /\[([\w-]+)\]\(tests\/check\/wrong\/\1\.c\)/g) {
                push @problems, "no finding of the kind \"$said\" is shown by $program" if $kind_of{$program} && !$kind_of{$program}{$said};
                push @problems, "$program did not end like this: $heading"
                    if exists $ends{$program} && $ends{$program} !~ /$wanted{$heading}/;
            }
        }
    }
    push @problems, 'few rows were read' if $rows < 20;
    return @problems;
}

# --- The tests -------------------------------------------------------------------------------

# A private copy, so that nothing of this run is left in the course. Of what was built there the
# library and the lessons come along, and nothing that may be taken for what the READMEs' commands
# build.
mkdir $copy or die "$copy: $!\n";
system "tar -C '$top' --exclude=./.git --exclude=./build -cf - . | tar -C '$copy' -xf -";
my @built = grep { -e "$top/$_" } qw(build/cpu build/config build/made build/lessons);
system "tar -C '$top' -cf - @built | tar -C '$copy' -xf -" if @built;
my $said = `cd '$copy' && timeout 600 make -s 2>&1`;
none('the course builds in a copy', $? ? ($said) : ());

sub read_files {
    return join '', map { read_file($_) } map { glob "$copy/$_" } @_;
}
$settings  = read_files('Makefile', '*/*.mk', '[0-9][0-9]-*/Makefile', 'results/measure/measure.sh');
$variables = read_files('cpu/src/*/*.[ch]', 'check/front/*.[ch]', 'check/front/*/*.[ch]', 'kernels/runtime/*.[ch]');
$messages  = join('', $settings, $variables, read_files('common/*.h', 'common/*.sh', 'check/nccl-check'))
    =~ s/"\s*\n\s*"//gr;

# These checks must be able to fail: what is wrong here, they have to find.
{
    my $folder = "$copy/01-nccl-broadcast";
    my $block  = sub {
        return {kind => 'console', lines => [@_]};
    };
    my $finds = sub {
        my ($what, $wanted, @problems) = @_;
        none("finds $what", "@problems" =~ /$wanted/ ? () : ("instead: @problems"));
    };
    my $passes = sub {
        my ($what, @problems) = @_;
        none("accepts $what", @problems);
    };
    $finds->('a stale line', 'does not print: 43',
        console_problems($block->('$ echo 42; echo 1 on vm', '43', '…'), $folder));
    $finds->('a line too few', 'prints more',
        console_problems($block->('$ echo 42; echo 1', '42'), $folder));
    $finds->('output where none is shown', 'prints more',
        console_problems($block->('$ echo 42 >&2'), $folder));
    $finds->('a failure that is not shown', 'exit code 3',
        console_problems($block->('$ true', '$ echo 42; (exit 3)', '42'), $folder));
    $finds->('a command that never ends', 'does not end', do {
        local $limit = 1;
        console_problems($block->('$ sleep 20'), $folder);
    });
    $finds->('a wrong verdict', 'does not print: OK: 3 ranks, all 12',
        console_problems($block->('$ mpirun -np 2 ./broadcast', '…',
            'OK: 3 ranks, all 12 elements as expected'), $folder));
    $passes->('what varies', console_problems($block->('$ uname -n; date; echo 1; echo e >&2',
        'vm', '…:…', '…', 'e', '$ (exit 3)', '$ echo $?', '3'), $folder));
    $finds->('a wrong make target', 'no such target',
        shell_problems(['make no-such-target'], $copy));
    $finds->('a wrong folder, script and program', 'no such folder.*nothing.slurm.*nobody',
        shell_problems(['cd 99-nothing', 'sbatch jobs/nothing.slurm', 'mpirun -np 4 ./nobody'],
            $copy));
    $finds->('code that is not in the lesson', 'not in broadcast.c',
        code_problems($block->('int rank, nranks;', 'int nothing;'), "$folder/broadcast.c"));
    $finds->('lines of code in another order', 'not in broadcast.c at this place',
        code_problems($block->('int ndevices;', '…', 'int rank, nranks;'),
            "$folder/broadcast.c"));
    my $text = sub {
        return {text => [@_]};
    };
    $finds->('Python that is not in the lesson', 'not in broadcast.py',
        code_problems($block->('dist.broadcast(buf, src=1)'), "$folder/broadcast.py"));
    $passes->('Python from the lesson, with a line left out',
        code_problems($block->('dist.broadcast(buf, src=0)', '…', 'lesson.expect(buf, 42)'), "$folder/broadcast.py"));
    $finds->('dead links', 'nothing.md.*no such file.*nowhere.*no such heading',
        link_problems($text->('[a](nothing.md) [b](LICENSE#nowhere)'), "$copy/README.md"));
    $finds->('a message that nothing prints', 'no source says "never ever said"',
        message_problems($text->('| The course says | do |', '|---|---|',
            '| `never ever said …` | a |')));
    my $lists = "## Missing\n| it waits | hint | [missing-a](x) |\n";
    $finds->('a symptom that was not seen, and a finding that is not in the list',
        'missing-a did not end like this.*no finding of the kind "race" is shown by missing-a', errors_problems(
            $text->('## The program hangs', '| a | b | c | missing: [missing-a](tests/check/wrong/missing-a.c) |',
                '| a | b | c | race: [missing-a](tests/check/wrong/missing-a.c) |'), $lists, "| `missing-a` | exit code 0 |\n"));
    $finds->('an unknown file and setting', 'common/nothing.h.*CPU_NOTHING',
        text_problems($text->('see `common/nothing.h`, `CPU_NOTHING=1`'), $copy));
}

my @readmes = @ARGV ? map { "$copy/$_" } @ARGV : glob "$copy/*.md $copy/*/*.md $copy/check/front/timeline/*.md";
for my $path (@readmes) {
    my $name = $path =~ s{^\Q$copy\E/}{}r;
    if (!-f $path) {
        none($name, 'there is no such file');
        next;
    }
    my $folder = dirname($path);
    my $readme = read_readme($path);
    my ($source) = basename($path) eq 'README.md' ? glob "$folder/*.c" : grep { -e } $path =~ s/md$/c/r;
    my $lesson = $source && (basename($folder) =~ /^\d\d-/ || basename($path) ne 'README.md');
    my ($twin) = basename($folder) =~ /^\d\d-/ ? glob "$folder/*.py" : ();
    my ($excerpts, $of_twin, @code, @of_twin, @shell) = (0, 0);
    for my $block (@{$readme->{blocks}}) {
        my $at = "$name:$block->{line}";
        next if !$ENV{ALL} && $name =~ /^1/ && grep { /^\$ cmp run\.svg / } @{$block->{lines}};
        if ($block->{kind} eq 'console') {
            my $begin    = processor_seconds();
            my @problems = console_problems($block, $folder);
            my $title    = (commands($block))[-1];
            none(sprintf('%s: %s (%.1f s)', $at, $title ? $title->{command} =~ s/\s+/ /gr : '',
                processor_seconds() - $begin), @problems);
        } elsif ($block->{kind} =~ /^(?:sh|bash)$/) {
            push @shell, map { "$at: $_" } shell_problems($block->{lines}, $folder);
        } elsif ($block->{kind} eq 'c' && $lesson) {
            $excerpts++;
            push @code, map { "$at: $_" } code_problems($block, $source);
        } elsif ($block->{kind} eq 'python' && $twin) {
            $of_twin++;
            push @of_twin, map { "$at: $_" } code_problems($block, $twin);
        }
    }
    none("$name: the code shown stands in " . basename($source), @code) if $excerpts;
    # The page says how to start the Python program, and shows its heart.
    push @of_twin, 'none of it is shown' if $twin && !$of_twin;
    push @of_twin, 'its torchrun is not there'
        if $twin && join("\n", @{$readme->{text}}) !~ /`torchrun --nproc_per_node=\d \Q@{[basename($twin)]}\E/;
    none("$name: the Python shown stands in " . basename($twin), @of_twin) if $twin && basename($path) eq 'README.md';
    none("$name: what its commands name exists", @shell, text_problems($readme, $folder));
    none("$name: its links lead somewhere", link_problems($readme, $path));
    none("$name: its findings are in the list, and ended so on GPUs",
        errors_problems($readme, read_file("$copy/check/findings.md"),
            join '', map { read_file("$copy/results/$_.md") } 'wrong-programs', 'nccl-check'))
        if $name eq 'errors.md';
    none("$name: the messages of its tables are ours", message_problems($readme))
        if grep { /^\|\s*The course says\s*\|/ } @{$readme->{text}};
}

done_testing();
