# device.pl: makes functions that the processor runs of a CUDA file's kernels. It rewrites LLVM's intermediate
# representation as text, twice: before everything is inlined, and after. inside.md says why.
use strict;
use warnings;

my ($opaque, $errors); # pointers have no types (LLVM 15 and newer)

sub pointer_to { $opaque ? 'ptr' : "$_[0]*" }

sub read_lines {
    open my $in, '<', $_[0] or die "cannot read $_[0]\n";
    my @lines = <$in>;
    close $in;
    chomp @lines;
    return @lines;
}

sub write_lines {
    my ($file, @lines) = @_;
    open my $out, '>', $file or die "cannot write $file\n";
    print $out map { "$_\n" } @lines;
    close $out or die "cannot write $file\n";
}

# A character, a string, or what stands in brackets.
my $one = qr/(?<one>"[^"]*"|[^()\[\]{}<>"]|[(\[{<](?&one)*[)\]}>])/;

my $pointer = qr/ptr|(?:(?!,)$one)+\*/; # a type

# Splits at commas that stand in no brackets.
sub at_commas {
    my ($text, @parts) = @_;
    push @parts, $1 =~ s/^\s+|\s+$//gr while $text =~ /((?:(?!,)$one)+)/g;
    return grep { length } @parts;
}

# The type at the beginning of a text, and what follows it.
sub type_of {
    my ($text) = @_;
    my ($type) = $text =~ /^((?:(?! (?!\())$one)*)/;
    return ($type, substr($text, length $type));
}

# --- Before inlining --------------------------------------------------------------------

sub refuse {
    my ($what) = @_;
    print STDERR "cpu-nvcc: error: $what\n" if !$errors->{$what}++;
}

# Inline PTX that public programs use: loads, stores and additions of numbers, and fences.
sub assembly {
    my ($line, $n) = @_;
    my ($to, $type, $text, $given, $dbg) =
        $line =~ /^\s+(%\S+ = )?(?:tail )?call (\S+) asm (?:sideeffect )?"([^"]*)", "[^"]*"\((.*)\)(?: #\d+)?(?:, !srcloc !\d+)?(, !dbg !\d+)?/
        or return refuse('inline PTX is not there');
    $text =~ s/\\0[9A]|\s+/ /g;
    $text =~ s/^ +| +$//g;
    my ($how, $width) = $text =~ /^(ld|st|red)\.[\w.:]*?[busf](32|64) / ? ($1, $2) : ('', 0);
    my @given = map { /^(.*?)(?: (?:noundef|nonnull))* (\S+)$/ ? [$1, $2] : () } at_commas($given);
    my ($at, $value) = @given;
    $dbg //= '';
    return "  fence seq_cst$dbg" if $text =~ /^(?:membar|fence)\.[\w.:]+;$/;
    my $is = $how eq 'ld' ? $type : $value ? $value->[0] : '';
    my $add = $is =~ /^[fd]/ ? 'fadd' : 'add';
    my $known = $how eq 'ld' ? $text =~ / \$0, ?\[\$1\];$/ : $how eq 'st' ? $text =~ / \[\$0\], ?\$1;$/ : $text =~ /^red\..*add.* \[\$0\], ?\$1;$/;
    return refuse("inline PTX is not there: \"$text\"") if !$known || !{ i32 => 32, float => 32, i64 => 64, double => 64 }->{$is};
    my $pointer = pointer_to($is);
    my $cast = $at->[0] eq 'i64' ? 'inttoptr' : 'bitcast';
    return ("  %cpu.ptx$n = $cast $at->[0] $at->[1] to $pointer$dbg",
        $how eq 'ld' ? "  ${to}load volatile $is, $pointer %cpu.ptx$n, align 4$dbg"
        : $how eq 'st' ? "  store volatile $is $value->[1], $pointer %cpu.ptx$n, align 4$dbg"
        : "  %cpu.red$n = atomicrmw $add $pointer %cpu.ptx$n, $is $value->[1] seq_cst$dbg");
}

my %is_kernel; # by name

# A struct without members is no parameter, yet an argument of the launch. Where such are is told by the kernel's
# name: its types in order, of which those without a parameter are left over.
my %empty_at; # for each kernel the places of such arguments

sub find_empty {
    my ($lines) = @_;
    my (%bare, %kernels, $kernel);
    %empty_at = ();
    my $base = sub { # of a type, without its namespace and its arguments
        my ($is) = $_[0] =~ /^(?:%"?(?:struct|class|union)\.)?(.*?)(?:\.\d+)?"?$/;
        return $is =~ /\{lambda[^<>]*\}$/ ? 'anon' : $is =~ s/<.*//r =~ s/.*:://r;
    };
    for (@$lines) {
        $bare{$1} = 1 if /^(%(?:"[^"]*"|\S+)) = type \{ i8 \}/;
        if (/^define .*section "cpu\.kernel"/) {
            my $it = read_function($_, []);
            $kernel = $kernels{ $it->{name} } = { parameters => [map { $_->[0] } arguments_of($it)], rooms => [] };
        } elsif ($kernel && /^\s+(%\S+) = alloca (%(?:"[^"]*"|[^\s,]+)),/) {
            push @{ $kernel->{rooms} }, [$1, $bare{$2}, $base->($2)]; # in the order of the arguments
            $kernel->{bare} = 1 if $bare{$2};
        } elsif ($_ eq '}') {
            undef $kernel;
        }
    }
    my @names = grep { $kernels{$_}{bare} } sort keys %kernels or return;
    my @words = split /\n/, `c++filt @{[ map { quoted($_) } @names ]}`;
    for my $i (0 .. $#names) {
        my $it = $kernels{ $names[$i] };
        my ($list) = $words[$i] =~ s/\{lambda\([^{}]*\)/{lambda/gr =~ /(\((?:[^()]|(?1))*\))$/;
        my @types = at_commas(substr $list // '()', 1, -1);
        my ($parameters, $rooms) = @$it{qw(parameters rooms)};
        for my $place (0 .. $#types) {
            my ($next, $room) = (@$parameters ? $parameters->[0]{name} =~ s/\.coerce\d*$//r : '', $rooms->[0] // ['']);
            if ($room->[1] && $room->[0] ne $next && $room->[2] eq $base->($types[$place])) {
                $empty_at{ $names[$i] }{$place} = 1;
                shift @$rooms;
            } else {
                shift @$rooms if $room->[0] eq $next;
                shift @$parameters;
            }
        }
    }
}

# Everything is the module's own, and is inlined: then it is known what a kernel uses.
sub device_inlinable {
    my ($from, $to, $version, $separate) = @_;
    $opaque = $version >= 15;
    $errors = {};
    %is_kernel = ();
    my (@out, %shared, %elsewhere, %variables, %local);
    my @lines = read_lines($from);
    find_empty(\@lines);
    for (@lines) {
        # What only one lane knows the others may give to a shuffle, too: values need not be defined.
        s/ noundef(?= )//g if !/section "cpu\.kernel"/;
        $local{$1} = 1 if /^\s+(%\S+) = alloca /;
        if (/^define /) {
            %local = ();
            my $kernel = /section "cpu\.kernel"/;
            my $known = $separate && !$kernel && /^define (?:dso_local )?(?!internal|linkonce|weak|available|hidden)[^@]*\@(\w+)\(/;
            $elsewhere{$1} = 1 if $known;
            s/ (?:comdat|section)(?:\(\$[^)]*\)| "[^"]*")?(?= |$)//g;
            s/^define (?:(?:weak|linkonce|weak_odr|linkonce_odr|internal|available_externally|dso_local|hidden|protected) )*/$kernel || $known ? 'define ' : 'define internal '/e;
            s/ (?=#\d+(?: |$))/ alwaysinline / if !$kernel;
            $is_kernel{$1} = 1 if $kernel && /(@(?:"[^"]*"|[\w\$.]+))\(/;
        } elsif (/^attributes #/) {
            s/ (?:noinline|optnone|convergent|"no-builtins")(?= )//g;
        } elsif (/^@/ && !/^\@llvm\./) {
            if (/^(@\S+) = .*external .*?global (\[0 x .*\]), /) { # extern __shared__
                $shared{$1} = $2;
                next;
            }
            s/, comdat(?:\(\$[^)]*\))?//;
            if (/^\@(?!__kernel_|standin_|std|_Z[ST]|_ZN?\w*L\d|_ZN12_GLOBAL_)(\w+) = (?:external|dso_local externally_initialized) (?!\w+ \[0 x)/) {
                my $variable = $1;
                my $extern = / = external /;
                refuse('a device variable of another file needs -dc: ' . `c++filt $variable` =~ s/\n//r) if $extern && !$separate;
                if ($separate) {
                    $variables{$variable} = $extern ? 0 : 1;
                    push @out, s/ = dso_local / = /r;
                    next;
                }
            }
            s/^(@\S+ = )(?:(?:weak|linkonce|weak_odr|linkonce_odr|common|dso_local|hidden) )+(?=.*?(?:global|constant) )/$1internal /
                if !/ external /;
            s/^(@\S+ = internal .*global .*) undef, /$1 zeroinitializer, section "cpu.shared", /; # __shared__
        } elsif (/^\$\S+ = comdat/) {
            next;
        } elsif (/^declare .*\@(_Z(?!N?K?S|nw|na|dl|da|N9__gnu|N10__cxx)\w+)\(/) {
            $elsewhere{$1} = 1;
            refuse('a device function of another file needs -dc: ' . `c++filt $1` =~ s/\n//r) if !$separate;
        } elsif (/\basm (?:sideeffect )?"/) {
            push @out, assembly($_, scalar @out);
            next;
        } elsif (/^\s+store volatile .*(?:\*|ptr) ([%@][^,]+), align/ && !$local{$1} && !$separate) {
            # Old sums of a warp rely on its threads being in step: all have read before one writes.
            my $step = '  call void @__kernel_wait(i32 6, i32 0)';
            push @out, $step, $_, $step;
            next;
        }
        push @out, $_;
    }
    for my $name (sort keys %shared) { # it lies in the runtime, which knows how much the launch has asked for
        my $is = $opaque ? '@__kernel_dynamic' : "bitcast ([0 x i8]* \@__kernel_dynamic to $shared{$name}*)";
        s/\Q$name\E(?![\w.\$])/$is/g for @out;
    }
    push @out, '@__kernel_dynamic = external global [0 x i8], align 1024' if %shared;
    push @out, 'declare void @__kernel_wait(i32, i32)' if !grep { /^declare .*\@__kernel_wait\(/ } @out;
    exit 1 if %$errors;
    # With -dc a function is there for other files, by a name that the host does not have.
    my $names = join '|', sort keys %elsewhere;
    s/\@($names)(?=\()/\@cpu.device.$1/g for $names ? @out : ();
    $names = join '|', sort keys %variables;
    s/\@($names)(?![\w.(])/\@cpu.device.$1/g for $names ? @out : ();
    write_lines($to, @out);
    return grep { $variables{$_} } sort keys %variables;
}

# --- After inlining ---------------------------------------------------------------------

my @where = qw(gx gy gz nx ny nz bx by bz tx ty tz); # grid, block, and where in them

# A function: its name, parameters, body.
sub read_function {
    my ($head, $body) = @_;
    my ($name, $given, undef, $after) = $head =~ /^define .*?(@(?:"[^"]*"|[\w\$.]+))\(($one*)\)(.*)$/ or die "cannot read: $head\n";
    my @parameters = map {
        my ($type, $more) = type_of($_);
        my ($register) = $more =~ /(%(?:"[^"]*"|[\w\$.-]+))$/;
        my ($byval) = $more =~ / byval\((.*)\) align/;
        { text => $_, type => $type, name => $register, byval => $byval, more => $more };
    } at_commas($given);
    return { name => $name, parameters => \@parameters, after => $after, body => $body, head => $head };
}

# The program's address of device memory leads nowhere: what a kernel loads as a pointer becomes the address
# of the same byte that it may use.
sub follow_pointers {
    my ($body) = @_;
    my ($n, $opaque_use) = (0, 0);
    my @out;
    for (@$body) {
        my ($dbg) = /(, !dbg !\d+)/;
        $dbg //= '';
        if (/^(\s+)(%\S+) = load (?:volatile )?($pointer), / && $3 !~ /\)\*$/ || /^(\s+)(%\S+) = inttoptr i64 .* to ($pointer)/) {
            my ($indent, $to, $type) = ($1, $2, $3);
            my $raw = "%cpu.raw" . $n++;
            s/\Q$to\E = /$raw = /;
            push @out, $_, "$indent$to = call $type \@" . here_of($type) . "($type $raw)$dbg";
            $opaque_use = 1;
            next;
        }
        # And the other way round: memory has what the program knows.
        if (/^(\s+)store (?:volatile )?($pointer) (?<value>%[^\s,]+), / && $2 !~ /\)\*$/) {
            my ($indent, $type, $value) = ($1, $2, $+{value});
            my $raw = "%cpu.raw" . $n++;
            s/store ((?:volatile )?)\Q$type $value\E,/store $1$type $raw,/;
            push @out, "$indent$raw = call $type \@" . there_of($type) . "($type $value)$dbg";
        }
        push @out, $_;
    }
    return (\@out, $opaque_use);
}

my $some_wait; # kernels of this file
my (%here, %there); # functions for each type of pointer
sub here_of { return $here{ $_[0] } //= 'cpu.here' . keys %here }
sub there_of { return $there{ $_[0] } //= 'cpu.there' . keys %there }

# From one address of a byte to the other.
sub moving_function {
    my ($name, $type, $back) = @_;
    my $reach = pointer_to('i64');
    return ("define internal $type \@$name($type %p) alwaysinline {", "  %at = ptrtoint $type %p to i64",
        "  %start = load i64, $reach \@standin_reach_start, align 8, !invariant.load !{}",
        "  %size = load i64, $reach \@standin_reach_size, align 8, !invariant.load !{}",
        $back ? ('  %begin = add i64 %start, %size', '  %move = sub i64 0, %size')
            : ('  %begin = add i64 %start, 0', '  %move = add i64 %size, 0'),
        '  %from = sub i64 %at, %begin', '  %in = icmp ult i64 %from, %size', '  %by = select i1 %in, i64 %move, i64 0',
        $opaque ? ('  %r = getelementptr i8, ptr %p, i64 %by', '  ret ptr %r')
            : ("  %q = bitcast $type %p to i8*", '  %s = getelementptr i8, i8* %q, i64 %by',
               "  %r = bitcast i8* %s to $type", "  ret $type %r"), '}');
}

sub here_functions {
    return ((map { moving_function($here{$_}, $_, 0) } sort keys %here), map { moving_function($there{$_}, $_, 1) } sort keys %there);
}

# A block's reduction (CUB) gives its result to the first thread only. If that thread runs last, and nothing else
# makes the threads wait, the others need not rest: each adds to what those before it have left.
sub choose_reduction {
    my ($kernel) = @_;
    my $body = $kernel->{body};
    my $waits = grep { /call void \@__kernel_wait\(i32 (?:noundef )?(\d+)/ && $1 != 4 } @$body;
    my $reduces = grep { /call void \@__kernel_wait\(/ } @$body;
    refuse('grid.sync() is not there: blocks run one after another') if grep { /\@__kernel_wait\(i32 (?:noundef )?5/ } @$body;
    $kernel->{waits} = $waits;
    $kernel->{first_last} = !$waits && $reduces;
    @$body = grep { !/call void \@__kernel_wait\(/ } @$body if !$waits;
    my $rests = $waits ? 'true' : 'false';
    for (@$body) {
        s/(call void \@__kernel_wait\(i32 (?:noundef )?)4/${1}1/;
        s/= (?:tail |notail )?call .*?i1 \@__kernel_rests\(\).*?(, !dbg !\d+|$)/= and i1 $rests, true$1/;
    }
}

# The indices are parameters of the kernel.
sub name_indices {
    my ($body) = @_;
    for (@$body) {
        s/= (?:tail |notail )?call .*?\@__kernel_index\(i32 (?:noundef )?(\d+)\).*?(, !dbg !\d+|$)/= add i32 %cpu.$where[$1], 0$2/;
    }
}

# --- What a kernel does with its pointers -----------------------------------------------

# Whether an index is 0 for the first thread: then the pointer's first element is used.
sub zero_first {
    my ($value, $defined, $depth) = @_;
    return 1 if $value eq '0' || $value =~ /^%cpu\.[bt][xyz]$/;
    return 0 if $depth > 20 || $value !~ /^%/;
    my $is = $defined->{$value} // return 0;
    my ($how, $a, $b) = $is =~ /^(add|or|shl|mul)(?: (?:nuw|nsw|disjoint))* \w+ (\S+), ([^\s,]+)/;
    if ($how) {
        my ($x, $y) = map { zero_first($_, $defined, $depth + 1) } $a, $b;
        return $how eq 'mul' ? $x || $y : $x && ($y || $how eq 'shl');
    }
    my ($narrow) = $is =~ /^(?:zext|sext|trunc)(?: (?:nneg|nuw|nsw))* \w+ (\S+) to/;
    return defined $narrow && zero_first($narrow, $defined, $depth + 1);
}

# Which way the first thread goes at a branch, as far as that can be guessed: the launch's arguments tell later
# whether it was right.
sub first_goes {
    my ($test, $yes, $no, $blocks, $defined) = @_;
    my ($how, $a, $b) = ($defined->{$test} // '') =~ /^icmp (?:samesign )?[su]?(\w+) \S+ (\S+), ([^\s,]+)/;
    if ($how) {
        my ($x, $y) = map { zero_first($_, $defined, 0) } $a, $b;
        return $how =~ /e/ if $x && $y; # eq, le, ge
        return $how =~ /^l|ne/ if $x; # 0 < b
        return $how =~ /^g|ne/ if $y; # a > 0
    }
    return ($blocks->{$yes}[0] // '') !~ /^\s+ret /;
}

# The way that the first thread takes: blocks in order, each with the conditions on which it comes there. A value
# that comes from several blocks is, at the first time, that of the block before.
sub reached_first {
    my ($blocks, $order, $defined) = @_;
    my ($at, $from, %reached, @way, @conditions) = ($order->[0], '');
    while (defined $at && !$reached{$at}++) {
        for (@{ $blocks->{$at} }) {
            my ($to, $type, $all) = /^\s+(%\S+) = phi (\S+) (\[ .* \])/ or next;
            my ($value) = $all =~ /\[ (\S+), %\Q$from\E \]/;
            $defined->{$to} = "or $type $value, 0" if defined $value && $type =~ /^i\d+$/;
        }
        push @way, [$at, @conditions];
        my ($last) = grep { /^\s+(?:br|switch|ret|unreachable)/ } reverse @{ $blocks->{$at} };
        $from = $at;
        undef $at;
        if (($last // '') =~ /^\s+br label %([^\s,]+)/) {
            $at = $1;
        } elsif (($last // '') =~ /^\s+br i1 (%[^\s,]+), label %([^\s,]+), label %([^\s,]+)/) {
            my ($test, $yes, $no) = ($1, $2, $3);
            my $goes = first_goes($test, $yes, $no, $blocks, $defined);
            $at = $goes ? $yes : $no;
            push @conditions, [$test, $goes];
        }
    }
    return @way;
}

# A value for the first thread, from the launch's arguments: an operand; undef if that can't be told.
sub value_first {
    my ($value, $defined, $given, $code, $made) = @_;
    return $value if $value !~ /^%/;
    return 0 if $value =~ /^%cpu\.[bt][xyz]$/;
    return $given->{$value} // $made->{$value} if exists $given->{$value} || exists $made->{$value};
    my $is = $defined->{$value} // '';
    $is =~ s/ (?:nuw|nsw|exact|nneg|disjoint|samesign)(?= )//g;
    return 0 if $is !~ /^(?:icmp|select)/ && zero_first($value, $defined, 0);
    $made->{$value} = undef; # until it is made: no circles
    return undef if $is !~ /^(?:add|sub|mul|shl|lshr|ashr|and|or|xor|icmp|sext|zext|trunc|select) / && $is !~ /^[su](?:div|rem) \w+ \S+, [1-9]/;
    my $well = 1;
    $is =~ s{(%[\w.\$-]+|%"[^"]*")(?!\*|[\w.])}{my $it = value_first($1, $defined, $given, $code, $made); $well &&= defined $it; $it // ''}ge;
    return undef if !$well;
    my $to = '%e' . @$code;
    push @$code, "  $to = $is";
    return $made->{$value} = $to;
}

# A function that says of which arguments the first thread uses the first element: a bit for each.
sub first_function {
    my ($kernel, $number) = @_;
    my ($loads, $given) = loads_of($kernel);
    my ($i8s, %given, %made, @code, %place) = (pointer_to(pointer_to('i8')));
    $given{ $kernel->{parameters}[$_]{name} } = (split ' ', $given->[$_])[-1] for 0 .. $#$given;
    my @arguments = arguments_of($kernel);
    for my $i (grep { $_ < 63 } 0 .. $#arguments) {
        $place{ $_->{name} } = 1 << $i for @{ $arguments[$i] };
    }
    my ($so_far, $all, $passed) = ('true', 0, 0);
    for my $step (@{ $kernel->{first} }) {
        my ($uses, @conditions) = @$step;
        for (@conditions[ $passed++ .. $#conditions ]) {
            my $is = value_first($_->[0], $kernel->{defined}, \%given, \@code, \%made);
            $so_far = undef if !defined $is;
            last if !defined $so_far;
            my $to = '%e' . @code;
            push @code, "  $to = select i1 $is, i1 " . ($_->[1] ? "$so_far, i1 false" : "false, i1 $so_far");
            $so_far = $to;
        }
        last if !defined $so_far;
        $passed = @conditions;
        my $bits = 0;
        $bits |= $place{$_} // 0 for @$uses;
        next if !$bits;
        my ($one, $sum) = map { '%e' . (@code + $_) } 0, 1;
        push @code, "  $one = select i1 $so_far, i64 $bits, i64 0", "  $sum = or i64 $one, $all";
        $all = $sum;
    }
    return ("define internal i64 \@cpu.first$number($i8s %arguments) {", 'entry:', @$loads, @code, "  ret i64 $all", '}');
}

sub blocks_of {
    my ($body) = @_;
    my (%blocks, @order, %defined);
    my $at;
    for (@$body) {
        if (/^([\w.\$-]+|"[^"]*"):/) {
            $at = $1;
            push @order, $at;
        } elsif (defined $at) {
            push @{ $blocks{$at} }, $_;
            $defined{$1} = $2 if /^\s+(%\S+) = (.*?)(?:, !\w+ !\d+)*$/;
        }
    }
    return (\%blocks, \@order, \%defined);
}

# One letter for each pointer: - not used, r read, w written. And on the first thread's way, of which pointers it
# uses the first element.
sub letters {
    my ($kernel) = @_;
    my ($blocks, $order, $defined) = blocks_of($kernel->{body});
    my @way = reached_first($blocks, $order, $defined);
    $kernel->{defined} = $defined;
    my %first; # registers that point to the first element of a parameter
    my %letter;
    for my $p (@{ $kernel->{parameters} }) {
        next if $p->{type} !~ /^ptr$|\*$/ || $p->{byval};
        $letter{ $p->{name} } = $p->{more} =~ / readnone/ ? '-' : $p->{more} =~ / readonly/ ? 'r' : 'w';
        $first{ $p->{name} } = $p->{name};
    }
    for my $step (@way) {
        my ($block, @conditions) = @$step;
        my @used;
        push @{ $kernel->{first} }, [\@used, @conditions];
        for (@{ $blocks->{$block} }) {
            if (/^\s+(%\S+) = getelementptr (?:inbounds )?(?:nuw |nusw )*.*?, (?:ptr|[^,]*\*) (%[^\s,]+), (.*?)(?:, !dbg.*)?$/) {
                my ($to, $base, $indices) = ($1, $2, $3);
                my @indices = $indices =~ /\w+ ([^\s,]+)/g;
                $first{$to} = $first{$base} if $first{$base} && !grep { !zero_first($_, $defined, 0) } @indices;
            } elsif (/^\s+(%\S+) = bitcast \S+ (%\S+) to/ && $first{$2}) {
                $first{$1} = $first{$2};
            } elsif (/^\s+\S+ = load .*?, (?:ptr|[^,]*\*) (%[^\s,]+)/ && $first{$1}) {
                push @used, $first{$1} if $letter{ $first{$1} } eq 'r';
            } elsif (/^\s+store .*, (?:ptr|[^,]*\*) (%[^\s,]+)/ && $first{$1}) {
                push @used, $first{$1};
            }
        }
    }
    return \%letter;
}

# Whether a kernel asks for blockIdx.x and threadIdx.x only in blockIdx.x * blockDim.x + threadIdx.x, so that all
# blocks of a row can be one loop. For each number: how often the product is in it, and how often threadIdx.x.
sub is_flat {
    my ($kernel) = @_;
    my (%is, %block, %size);
    for (@{ $kernel->{body} }) {
        my ($to, $what) = /^\s+(?:(%\S+) = )?(.*?)(?:, !\w+ !\d+)*$/ or next;
        my @used = $what =~ /(%[\w.\$-]+)/g;
        my ($how, $a, $b) = $what =~ /^(add|sub|mul|zext|sext)(?: (?:nuw|nsw|nneg))* \w+ ([^\s,]+)(?:, ([^\s,]+)| to .*)$/;
        if ($what =~ /^add i32 %cpu\.(tx|bx|nx), 0$/) {
            $is{$to} = [0, 1] if $1 eq 'tx';
            $block{$to} = 1 if $1 eq 'bx';
            $size{$to} = 1 if $1 eq 'nx';
        } elsif ($how && $how =~ /ext/ && ($block{$a} || $size{$a})) {
            $block{$to} = $block{$a};
            $size{$to} = $size{$a};
        } elsif ($how && $how eq 'mul' && ($block{$a} && $size{$b} || $size{$a} && $block{$b})) {
            $is{$to} = [1, 0];
        } elsif (grep { $block{$_} } @used) {
            return 0;
        } elsif ($how && $how ne 'mul') {
            my ($x, $y) = map { defined $_ && $is{$_} || [0, 0] } $a, $b;
            my $sign = $how eq 'sub' ? -1 : 1;
            $is{$to} = [map { $x->[$_] + $sign * $y->[$_] } 0, 1];
        } else {
            return 0 if grep { $is{$_} && $is{$_}[0] != $is{$_}[1] } @used;
        }
    }
    return 1;
}

# Whether a kernel does nothing but loops whose step is the grid, for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
# i += gridDim.x * blockDim.x), or the block, with threadIdx.x and blockDim.x. A single thread whose step is 1 then does
# the work of all, in an order that is right for each. Each value has a letter: b, g, n and t are the four indices, p is
# the product, i the start (with threadIdx.x), s the step; P and I have something added that may be negative; u is the
# same for all threads and grids, x any other.
sub is_strided {
    my ($kernel, $block) = @_;
    my ($blocks, $order, $defined) = blocks_of($kernel->{body});
    my ($at, $all, $name) = ($order->[0], join("\n", @{ $kernel->{body} }), qr/%(?:"[^"]*"|[\w.\$-]+)/);
    my %letter = $block ? ('%cpu.tx' => 'i', '%cpu.nx' => 's') : map { ("%cpu.${_}x" => $_) } qw(b g n t);
    my %result = ('mul bn' => 'p', 'mul gn' => 's', 'add pt' => 'i', 'add Pt' => 'I', 'add pu' => 'P', 'add iu' => 'I', 'add Iu' => 'I');
    my $letter;
    $letter = sub {
        my ($how, $type, $a, $b) = ($defined->{ $_[0] } // '') =~ /^(add|mul|[sz]ext)(?: (?:nuw|nsw|nneg))* (\w+) ([^\s,]+)(?:, ([^\s,]+)| to)/;
        return $letter{ $_[0] } //= 'u' if $letter{ $_[0] } || !$how; # the same for all
        my ($x, $y) = map { $letter->($_) } $a, $b // '';
        my ($both, $added) = (join('', sort $x, $y), $defined->{ $x eq 'u' ? $a : $b // '' } // '');
        return $letter{ $_[0] } = !defined $b || $b eq '0' ? ($how eq 'zext' && $x =~ /[IP]/ ? 'x' : $x) : $both eq 'uu' ? 'u'
            : $both eq 'iu' && $type eq 'i64' && $added =~ /^(?:and|lshr|udiv|zext) / ? 'i' : $result{"$how $both"} // 'x';
    };
    my $times = sub { scalar(() = $all =~ /\Q$_[0]\E(?![\w.\$-])/g) };
    my $bare = sub { my $v = $_[0]; $v = $1 while ($defined->{$v} // '') =~ /^[sz]ext (?:nneg )?\S+ (\S+) to/; $v };
    my $goes_on = sub { # a comparison of a value: how, and with what
        my ($how, $a, $b) = ($defined->{ $_[0] } // '') =~ /^icmp (?:samesign )?([su][lg]\w) \S+ ([^\s,]+), ([^\s,]+)/ or return '';
        ($a, $b) = ($b, $a) if $how =~ s/g/l/;
        return $bare->($a) eq $bare->($_[1]) ? "$how " . $bare->($b) : '';
    };
    my (%outside, %known, @limits);
    while ($blocks->{$at}[-1] !~ /^\s+ret void/) { # from loop to loop
        my ($guard, $to, $exit) = $blocks->{$at}[-1] =~ /^\s+br i1 ($name), label %([^\s,]+), label %([^\s,]+)/ or return 0;
        return 0 if $outside{$at}++;
        ($outside{$to}, $to) = (1, $1) if $blocks->{$to}[-1] =~ /^\s+br label %([^\s,]+)/ && $blocks->{$to}[0] !~ / = phi /;
        my ($i, $values) = $blocks->{$to}[0] =~ /^\s+($name) = phi \w+ (\[ .* \])/ or return 0;
        my %in = $values =~ /\[ (\S+), %(\S+) \]/g;
        my ($start, $next) = sort { $letter->($b) =~ /i/i <=> $letter->($a) =~ /i/i } keys %in;
        my @sum = ($defined->{ $next // '' } // '') =~ /^add (?:n[us]w )*\w+ ([^\s,]+), ([^\s,]+)/;
        my ($again) = $blocks->{ $in{ $next // '' } // $at }[-1] =~ /^\s+br i1 ($name), label %\Q$to\E, label %\Q$exit\E(?:,|$)/ or return 0;
        my ($first, $then) = ($goes_on->($guard, $start), $goes_on->($again, $next));
        # No other way leads in or out, nothing else is handed on, and what is counted has no other use.
        return 0 if !$first || $first ne $then || join(' ', sort map { $_ eq $i ? '' : $letter->($_) } @sum) ne ' s'
            || $letter->($start) !~ ($first =~ /^s/ ? qr/i/i : qr/i/) || (grep { / = phi / } @{ $blocks->{$to} }) != 1
            || (grep { $times->($_) != 2 } "label %$exit", "label %$to", $guard, $again) || $times->($next) != 3;
        $known{$_} = 1 for $i, $next, $guard, $again;
        push @limits, (split ' ', $first)[1];
        $at = $exit;
    }
    $outside{$at} = 1;
    my %inside = map { $outside{$_} ? () : map { /^\s+($name) = / ? ($1 => 1) : () } @{ $blocks->{$_} } } @$order;
    for my $block (@$order) {
        for (@{ $blocks->{$block} }) {
            my ($to, $what) = /^\s+(?:($name) = )?(.*?)(?:, !\S+ !\d+)*$/;
            my @used = $what =~ /($name)/g;
            return 0 if $outside{$block} && ($what !~ /^(?:add|sub|mul|and|or|xor|shl|[la]shr|[us]div|[us]rem|[sz]ext|trunc|icmp|select|bitcast|getelementptr|load|br|ret|call .*\@(?:cpu\.here|llvm\.[su]m))/
                || grep { $inside{$_} } @used) || (grep { $letter->($_) ne 'u' } @used) && !(defined $to && ($known{$to} || $letter->($to) ne 'u'));
        }
    }
    return @limits && !grep { $inside{$_} || $letter->($_) ne 'u' } @limits;
}

# --- How a kernel is run ----------------------------------------------------------------

# The arguments of the program, each with the parameters that it became: a small struct is passed in parts.
sub arguments_of {
    my ($kernel) = @_;
    my (@arguments, $last);
    for my $p (@{ $kernel->{parameters} }) {
        my ($base, $part) = $p->{name} =~ /^(%.*)\.coerce(\d*)$/;
        if (defined $base && defined $last && $last eq $base) {
            push @{ $arguments[-1] }, $p;
        } else {
            push @arguments, [] while $empty_at{ $kernel->{name} }{ scalar @arguments };
            push @arguments, [$p];
        }
        $last = $base;
    }
    push @arguments, [] while $empty_at{ $kernel->{name} }{ scalar @arguments };
    return @arguments;
}

# Loads each argument from where the launch has put it.
sub loads_of {
    my ($kernel) = @_;
    my (@code, @given);
    my ($i8, $i8s) = (pointer_to('i8'), pointer_to(pointer_to('i8')));
    my ($i, $k) = (0, 0);
    for my $argument (arguments_of($kernel)) {
        push @code, "  %s$i = getelementptr $i8, $i8s %arguments, i64 $i", "  %a$i = load $i8, $i8s %s$i, align 8";
        for my $part (0 .. $#$argument) {
            my $p = $argument->[$part];
            my $type = $p->{type};
            my $where = "%a$i";
            if ($part) {
                push @code, "  %o$k = getelementptr i8, $i8 %a$i, i64 8";
                $where = "%o$k";
            }
            my $to = $p->{byval} ? $type : pointer_to($type);
            if (!$opaque) {
                push @code, "  %b$k = bitcast i8* $where to $to";
                $where = "%b$k";
            }
            if ($p->{byval}) {
                my $attributes = $p->{more} =~ / (align \d+)/ ? " $1" : '';
                push @given, "$type byval($p->{byval})$attributes $where";
            } elsif ($type eq 'i1') {
                push @code, "  %c$k = load i8, " . pointer_to('i8') . " %a$i", "  %v$k = trunc i8 %c$k to i1";
                push @given, "i1 zeroext %v$k";
            } elsif ($type =~ /^ptr$|\*$/) {
                push @code, "  %p$k = load $type, $to $where, align 1", "  %v$k = call $type \@" . here_of($type) . "($type %p$k)";
                push @given, "$type %v$k";
            } else {
                push @code, "  %v$k = load $type, $to $where, align 1";
                push @given, "$type %v$k";
            }
            $k++;
        }
        $i++;
    }
    return (\@code, \@given);
}

# Most kernels begin with "if (i < n)". Where that holds for the first and the last thread of a row it holds for
# all: those rows need no masks, which are slow. The condition of a kernel's first block, if it is made of
# comparisons that change once along x; otherwise undef.
sub guard_of {
    my ($kernel) = @_;
    my ($blocks, $order, $defined) = blocks_of($kernel->{body});
    my @first = @{ $blocks->{ $order->[0] } };
    my ($condition) = ($first[-1] // '') =~ /^\s+br i1 (%[^\s,]+),/ or return;
    for (@first[ 0 .. $#first - 1 ]) {
        return if !/^\s+%\S+ = (?:add|sub|mul|shl|sext|zext|trunc|icmp|and|or|select|udiv|urem|lshr)\b/;
    }
    return monotone($condition, $defined, 0) ? { condition => $condition, code => \@first, label => $order->[0] } : undef;
}

sub monotone {
    my ($value, $defined, $depth) = @_;
    my $is = $defined->{$value} // return 0;
    return 0 if $depth > 8;
    if ($is =~ /^and i1 (%\S+), (%[^\s,]+)/ || $is =~ /^select i1 (%\S+), i1 (%\S+), i1 false/) {
        my ($a, $b) = ($1, $2);
        return monotone($a, $defined, $depth + 1) && monotone($b, $defined, $depth + 1);
    }
    my ($a, $b) = $is =~ /^icmp (?:samesign )?[su]\w+ \w+ (\S+), ([^\s,]+)/ or return 0;
    return linear($a, $defined, 0) && linear($b, $defined, 0);
}

# Grows, or falls, evenly with x; 2: does not depend on it.
sub linear {
    my ($value, $defined, $depth) = @_;
    return 1 if $value eq '%cpu.tx';
    return 2 if $value !~ /^%/ || !defined $defined->{$value};
    return 0 if $depth > 20;
    my ($how, $rest) = $defined->{$value} =~ /^(\w+) (.*)/;
    my ($a, $b) = $rest =~ /^(?:(?:nuw|nsw|nneg|disjoint|exact) )*\w+ ([^\s,]+)(?:, ([^\s,]+))?/ or return 0;
    my ($x, $y) = map { defined $_ ? linear($_, $defined, $depth + 1) : 2 } $a, $b;
    return 0 if !$x || !$y;
    return 2 if $x == 2 && $y == 2;
    return $how =~ /^(?:add|sub|sext|zext|or)$/ || ($how =~ /^(?:mul|shl)$/ && $y + $x == 3 && ($how eq 'mul' || $x == 1)) ? 1 : 0;
}

# The guard as a function, and the kernel where it holds.
sub guarded_functions {
    my ($kernel, $guard) = @_;
    my $name = quoted($kernel->{name});
    my $parameters = join ', ', map({ "$_->{type} " . ($_->{byval} ? "byval($_->{byval}) " : '') . $_->{name} } @{ $kernel->{parameters} }),
        map { "i32 %cpu.$_" } @where;
    my @code = map { s/, !dbg !\d+//r } @{ $guard->{code} };
    pop @code;
    my @inside = @{ $kernel->{body} };
    my ($branch) = grep { $inside[$_] =~ /^\s+br i1 \Q$guard->{condition}\E,/ } 0 .. $#inside;
    splice @inside, $branch, 0, "  call void \@llvm.assume(i1 $guard->{condition})";
    my $head = head_of($kernel, 0);
    $head =~ s/\Q$kernel->{name}\E\(/\@"$name.inside"(/;
    $head =~ s/ !dbg !\d+//;
    return ("define internal i1 \@\"$name.guard\"($parameters)" . ($some_wait ? '' : ' alwaysinline') . ' {', 'cpu.guard:', @code, "  ret i1 $guard->{condition}", '}',
        $head, @inside, '}');
}

# The threads of a block are a loop, which can be made to work on several of them at once.
sub loop_function {
    my ($kernel, $number, $loop, $of, $at) = @_;
    my ($loads, $given) = loads_of($kernel);
    my ($i8s, $i32) = (pointer_to(pointer_to('i8')), pointer_to('i32'));
    my @code = ("define internal void \@cpu.run$number($i8s noalias %arguments, $i32 noalias %where)$of {", 'entry:', @$loads);
    for my $n (0 .. 14) {
        push @code, "  %w$n.at = getelementptr i32, $i32 %where, i64 $n", "  %w$n = load i32, $i32 %w$n.at, align 4";
    }
    my $guard = !$kernel->{strided} && $kernel->{guard};
    my ($plain, $name) = (', !llvm.loop !' . $loop, quoted($kernel->{name}));
    my $call = join ', ', @$given, map { "i32 $_" } map({ "%w$_" } 0 .. 8), '%x', '%y', '%z';
    push @code, '  br label %zs',
        'zs:', '  %z = phi i32 [ %w11, %entry ], [ %z.next, %ys.end ]', '  br label %ys',
        'ys:', '  %y = phi i32 [ %w10, %zs ], [ %y.next, %xs.end ]';
    my $start = '[ %w9, %ys ]';
    if ($kernel->{strided}) { # all threads of the row by one whose step is 1
        my ($grid, $block) = $kernel->{strided} eq 'grid' ? (1, 0) : ('%w0', '%w6');
        my $one = join ', ', @$given, map { "i32 $_" } $grid, '%w1', '%w2', 1, '%w4', '%w5', $block, '%w7', '%w8', 0, '%y', '%z';
        push @code, '  %blocks = udiv i32 %w12, %w3', '  %whole = icmp eq i32 %blocks, ' . ($block ? 1 : '%w0'), '  %begin = icmp eq i32 %w9, 0',
            '  %all = and i1 %whole, %begin', '  br i1 %all, label %one, label %xs', 'one:', "  call void $kernel->{name}($one)$at", '  br label %xs.end';
    } elsif ($guard) { # threads before those inside; where these end, by halves; these; the others
        my $asks = sub { "  $_[0] = call i1 \@\"$name.guard\"(" . $call =~ s/i32 %x,/i32 $_[1],/r . ')' };
        my $inside = $call =~ s/i32 %x,/i32 %i,/r;
        my $before = $call =~ s/i32 %x,/i32 %a,/r;
        $start = '[ %end, %rest ]';
        push @code, '  %last = sub i32 %w12, 1', '  br label %as',
            'as:', '  %a = phi i32 [ %w9, %ys ], [ %a.next, %as.run ]', '  %a.more = icmp ult i32 %a, %w12', '  br i1 %a.more, label %as.ask, label %xs.end',
            'as.ask:', $asks->('%a.in', '%a'), '  br i1 %a.in, label %find, label %as.run',
            'as.run:', "  call void $kernel->{name}($before)$at", '  %a.next = add nuw nsw i32 %a, 1', "  br label %as$plain",
            'find:', $asks->('%last.in', '%last'), '  br i1 %last.in, label %inside, label %half',
            'half:', '  %lo = phi i32 [ %a, %find ], [ %lo.next, %half.ask ]', '  %hi = phi i32 [ %last, %find ], [ %hi.next, %half.ask ]',
            '  %gap = sub i32 %hi, %lo', '  %wide = icmp ugt i32 %gap, 1', '  br i1 %wide, label %half.ask, label %inside',
            'half.ask:', '  %step = lshr i32 %gap, 1', '  %mid = add i32 %lo, %step', $asks->('%mid.in', '%mid'),
            '  %lo.next = select i1 %mid.in, i32 %mid, i32 %lo', '  %hi.next = select i1 %mid.in, i32 %hi, i32 %mid', '  br label %half',
            'inside:', '  %end = phi i32 [ %w12, %find ], [ %hi, %half ]', '  br label %is',
            'is:', '  %i = phi i32 [ %a, %inside ], [ %i.next, %is ]', "  call void \@\"$name.inside\"($inside)$at",
            '  %i.next = add nuw nsw i32 %i, 1', '  %i.more = icmp ult i32 %i.next, %end', '  br i1 %i.more, label %is, label %rest',
            'rest:', '  %r.more = icmp ult i32 %end, %w12', '  br i1 %r.more, label %xs, label %xs.end';
    } else {
        push @code, '  br label %xs';
    }
    push @code, 'xs:', "  %x = phi i32 $start, [ %x.next, %xs ]", "  call void $kernel->{name}($call)$at",
        '  %x.next = add nuw nsw i32 %x, 1', '  %x.more = icmp ult i32 %x.next, %w12',
        '  br i1 %x.more, label %xs, label %xs.end' . ($guard ? $plain : ''),
        'xs.end:', '  %y.next = add nuw nsw i32 %y, 1', '  %y.more = icmp ult i32 %y.next, %w13', '  br i1 %y.more, label %ys, label %ys.end',
        'ys.end:', '  %z.next = add nuw nsw i32 %z, 1', '  %z.more = icmp ult i32 %z.next, %w14', '  br i1 %z.more, label %zs, label %over',
        'over:', '  ret void', '}';
    return (@code, $guard ? ("!$loop = distinct !{!$loop, !" . ($loop + 1) . '}', '!' . ($loop + 1) . ' = !{!"llvm.loop.vectorize.enable", i1 false}',
        guarded_functions($kernel, $guard)) : ());
}

# A kernel whose threads wait for one another: each thread is a coroutine that rests at the barrier.
sub thread_function {
    my ($kernel, $number, $of, $at) = @_;
    my ($loads, $given) = loads_of($kernel);
    my ($i8, $i8s, $i32) = (pointer_to('i8'), pointer_to(pointer_to('i8')), pointer_to('i32'));
    my @code = ("define internal $i8 \@cpu.run$number($i8s %arguments, $i32 %where)$of {", 'entry:', @$loads);
    for my $n (0 .. 11) {
        push @code, "  %w$n.at = getelementptr i32, $i32 %where, i64 $n", "  %w$n = load i32, $i32 %w$n.at, align 4";
    }
    my $call = join ', ', @$given, (map { "i32 %w$_" } 0 .. 11);
    push @code, "  %h = call $i8 $kernel->{name}($call)$at", "  ret $i8 %h", '}';
    return @code;
}

sub make_coroutine {
    my ($kernel) = @_;
    my $i8 = pointer_to('i8');
    my $n = 0;
    my ($slots, $body) = through_memory($kernel->{body});
    my ($label) = $body->[0] =~ /^([\w.\$-]+):/;
    my @out = ('cpu.start:', @$slots, grep({ / = alloca / } @$body),
        "  %cpu.id = call token \@llvm.coro.id(i32 0, $i8 null, $i8 null, $i8 null)",
        '  %cpu.size = call i64 @llvm.coro.size.i64()', "  %cpu.room = call $i8 \@__kernel_frame(i64 %cpu.size)",
        "  %cpu.self = call $i8 \@llvm.coro.begin(token %cpu.id, $i8 %cpu.room)", "  br label %$label");
    for (grep { !/ = alloca / } @$body) {
        if (/call void \@__kernel_wait\((i32 .*?)\)/) {
            my ($new, $why) = ("cpu.again$n", $1 =~ s/(i32 (?:noundef )?6, .*) 0$/$1 $n/r);
            push @out, "  call void \@__kernel_waits($why)", "  %cpu.rest$n = call i8 \@llvm.coro.suspend(token none, i1 false)",
                "  switch i8 %cpu.rest$n, label %cpu.leave [ i8 0, label %$new", "    i8 1, label %cpu.clean ]", "$new:";
            $n++;
            next;
        }
        s/^(\s+)ret void.*/$1br label %cpu.over/;
        push @out, $_;
    }
    push @out, 'cpu.over:', '  call void @__kernel_waits(i32 0, i32 0)', '  br label %cpu.leave',
        'cpu.clean:', "  %cpu.free = call $i8 \@llvm.coro.free(token %cpu.id, $i8 %cpu.self)", '  br label %cpu.leave',
        'cpu.leave:', "  %cpu.end = call i1 \@llvm.coro.end($i8 %cpu.self, i1 false)", "  ret $i8 %cpu.self";
    $kernel->{body} = \@out;
}

# A value that comes from several blocks goes through memory instead: LLVM 14 loses those that must outlast a
# rest.
sub through_memory {
    my ($body) = @_;
    my (%stores, @rooms, @out, $label);
    my $n = 0;
    for (@$body) {
        if (/^([\w.\$-]+|"[^"]*"):/) {
            $label = $1;
        } elsif (/^\s+(%\S+) = phi (?:fast |nnan |ninf |nsz |arcp |contract |afn |reassoc )*(.*?) (\[ .* \])/) {
            my ($to, $type, $from) = ($1, $2, $3);
            my $slot = '%cpu.slot' . $n++;
            push @rooms, "  $slot = alloca $type";
            while ($from =~ /\[ (.*?), %([\w.\$-]+|"[^"]*") \]/g) {
                push @{ $stores{$2} }, "  store $type $1, " . pointer_to($type) . " $slot";
            }
            push @out, "  $to = load $type, " . pointer_to($type) . " $slot";
            next;
        }
        push @out, $_;
    }
    my @with;
    for (@out) {
        $label = $1 if /^([\w.\$-]+|"[^"]*"):/;
        push @with, @{ delete $stores{$label} } if $stores{$label} && /^\s+(?:br|switch|ret|unreachable)\b/;
        push @with, $_;
    }
    return (\@rooms, \@with);
}

sub head_of {
    my ($kernel, $coroutine) = @_;
    my $more = join ', ', map({ $_->{text} } @{ $kernel->{parameters} }), map { "i32 %cpu.$_" } @where;
    my $after = $kernel->{after};
    $after =~ s/ (?:local_)?unnamed_addr//;
    if (!$coroutine) {
        my $when = $some_wait ? '' : ' alwaysinline';
        return "define internal void $kernel->{name}($more)$when$after";
    }
    $after =~ s/ #\d+//;
    $after =~ s/ !dbg !\d+//; # LLVM 14 to 19 end with an error here
    my $split = $opaque ? ' presplitcoroutine' : ' "coroutine.presplit"="0"';
    return 'define internal ' . pointer_to('i8') . " $kernel->{name}($more)$split$after";
}

sub quoted { my ($text) = @_; $text =~ s/^@//; $text =~ s/^"|"$//g; return $text }

# A string as a constant, and a pointer to it.
sub string_constant {
    my ($name, $text) = @_;
    my $bytes = 1 + length $text;
    my $pointer = $opaque ? "ptr \@$name" : "i8* getelementptr inbounds ([$bytes x i8], [$bytes x i8]* \@$name, i64 0, i64 0)";
    return ("\@$name = private constant [$bytes x i8] c\"$text\\00\"", $pointer);
}

sub size_constant {
    my ($type) = @_;
    return 'ptrtoint (' . pointer_to($type) . " getelementptr ($type, " . pointer_to($type) . ' null, i32 1) to i64)';
}

# What the runtime is told of a kernel: struct kernel_code in kernels.h.
sub describe {
    my ($kernel, $number, $shared) = @_;
    my ($uses, @sizes) = ('');
    my $letter = $kernel->{letter};
    for my $argument (arguments_of($kernel)) {
        my $p = $argument->[-1];
        if (!$p) {
            $uses .= '.';
            push @sizes, 'i64 1';
            next;
        }
        # A pointer in a struct is found as one in memory is.
        $kernel->{elsewhere} = 1 if @$argument > 1 && grep { ($letter->{ $_->{name} } // '-') ne '-' } @$argument;
        $uses .= @$argument == 1 && !$p->{byval} && $letter->{ $p->{name} } ? $letter->{ $p->{name} } : '.';
        my $size = size_constant($p->{byval} || ($p->{type} eq 'i1' ? 'i8' : $p->{type}));
        push @sizes, @$argument > 1 ? "i64 add (i64 $size, i64 8)" : "i64 $size";
    }
    my $n = @sizes;
    my ($name, $name_at) = string_constant("cpu.name$number", quoted($kernel->{name}));
    my ($text, $text_at) = string_constant("cpu.uses$number", $uses);
    my $array = "[$n x i64]";
    my $sizes_at = $opaque ? "ptr \@cpu.sizes$number" : "i64* getelementptr inbounds ($array, $array* \@cpu.sizes$number, i64 0, i64 0)";
    my ($i8, $i8s, $i32, $i64) = map { pointer_to($_) } 'i8', pointer_to('i8'), 'i32', 'i64';
    my $run = $kernel->{waits} ? "$i8 ($i8s, $i32)" : "void ($i8s, $i32)";
    my $run_at = $opaque ? "ptr \@cpu.run$number" : "i8* bitcast ($run* \@cpu.run$number to i8*)";
    my $first_at = $opaque ? "ptr \@cpu.first$number" : "i8* bitcast (i64 ($i8s)* \@cpu.first$number to i8*)";
    my @used = grep { my $s = quotemeta; grep { /$s\b/ } @{ $kernel->{body} } } sort keys %$shared;
    my $flat = !$kernel->{waits} && !@used && is_flat($kernel);
    my $simple = !$kernel->{waits} && !$kernel->{first_last};
    $kernel->{strided} = $flat && $simple && is_strided($kernel, 0) ? 'grid' : $simple && is_strided($kernel, 1) ? 'block' : '';
    my $static = '0';
    $static = "add (i64 $static, i64 " . size_constant($shared->{$_}) . ')' for @used;
    return ($name, $text, "\@cpu.sizes$number = private constant $array [" . join(', ', @sizes) . ']'
        ), "%cpu.code { $name_at, $run_at, $first_at, $sizes_at, $text_at, i64 $static, i32 $n, i32 "
        . (($kernel->{waits} ? 1 : 0) | ($kernel->{elsewhere} ? 2 : 0)
        | ($flat ? 4 : 0) | ($kernel->{first_last} ? 8 : 0)) . ' }';
}

sub registration {
    my ($id, $codes, $variables) = @_;
    my ($i8, $i64) = (pointer_to('i8'), pointer_to('i64'));
    my ($nc, $nv) = (scalar @$codes, scalar @$variables);
    my @out = ('%cpu.code = type { ' . join(', ', $i8, $i8, $i8, $i64, $i8, 'i64', 'i32', 'i32') . ' }', "%cpu.variable = type { $i8, $i8, i64 }",
        "%cpu.module = type { $i8, " . pointer_to('%cpu.code') . ', i64, ' . pointer_to('%cpu.variable') . ", i64, $i8 }");
    my ($id_line, $id_at) = string_constant('cpu.id', $id);
    push @out, $id_line, "\@cpu.codes = private constant [$nc x %cpu.code] [" . join(', ', @$codes) . ']',
        "\@cpu.variables = private constant [$nv x %cpu.variable] [" . join(', ', map { $_->[1] } @$variables) . ']',
        map { $_->[0] } @$variables;
    my $code_at = $opaque ? 'ptr @cpu.codes' : "%cpu.code* getelementptr inbounds ([$nc x %cpu.code], [$nc x %cpu.code]* \@cpu.codes, i64 0, i64 0)";
    my $variable_at = $opaque ? 'ptr @cpu.variables'
        : "%cpu.variable* getelementptr inbounds ([$nv x %cpu.variable], [$nv x %cpu.variable]* \@cpu.variables, i64 0, i64 0)";
    my $module = pointer_to('%cpu.module');
    push @out, "\@cpu.module = internal global %cpu.module { $id_at, $code_at, i64 $nc, $variable_at, i64 $nv, $i8 null }",
        'define internal void @cpu.register() {', "  call void \@__kernel_module($module \@cpu.module)", '  ret void', '}';
    my $f = $opaque ? 'ptr' : 'void ()*';
    push @out, "\@llvm.global_ctors = appending global [1 x { i32, $f, $i8 }] [{ i32, $f, $i8 } { i32 65535, $f \@cpu.register, $i8 null }]",
        "declare void \@__kernel_module($module)", 'declare void @llvm.assume(i1 noundef)', "declare void \@__kernel_waits(i32, i32)", "declare $i8 \@__kernel_frame(i64)",
        "declare token \@llvm.coro.id(i32, $i8, $i8, $i8)", 'declare i64 @llvm.coro.size.i64()', "declare $i8 \@llvm.coro.begin(token, $i8)",
        'declare i8 @llvm.coro.suspend(token, i1)', "declare i1 \@llvm.coro.end($i8, i1)", "declare $i8 \@llvm.coro.free(token, $i8)",
        '@standin_reach_start = external global i64', '@standin_reach_size = external global i64';
    return @out;
}

# The lines of a kernel belong to the function that it becomes part of. Returns what is written after that
# function's head, after its call, and the metadata.
sub lines_of {
    my ($kernel, $lines, $number) = @_;
    my ($of) = $kernel->{head} =~ / !dbg (!\d+)/ or return ('', '');
    my ($it) = grep { /^\Q$of\E = / } @$lines or return ('', '');
    my %has = $it =~ /(file|unit|type): (!\d+)/g;
    my ($line) = $it =~ / line: (\d+)/;
    my ($function, $call) = map { '!' . ($number + $_) } 0, 1;
    return (" !dbg $function", ", !dbg $call",
        "$function = distinct !DISubprogram(name: \"kernel\", scope: $has{file}, file: $has{file}, line: $line, type: $has{type}, "
        . "unit: $has{unit}, spFlags: DISPFlagDefinition)", "$call = !DILocation(line: $line, column: 1, scope: $function)");
}

# Gives each kernel a function that runs a block, or a thread, of it, and tells the runtime of them.
sub device_runnable {
    my ($from, $to, $version, $id) = @_;
    $opaque = $version >= 15;
    $errors = {};
    %here = %there = ();
    my (@out, @kernels, %shared, @variables);
    my @lines = read_lines($from);
    while (defined(my $line = shift @lines)) {
        if ($line !~ /^define /) {
            $shared{$1} = $2 if $line =~ /^(@\S+) = internal .*?global (.*) (?:zeroinitializer|undef), section "cpu\.shared"/;
            if ($line =~ /^(@\S+) = (?:internal )?(?:\w+ )*?externally_initialized (?:global|constant) (.*)$/) {
                my ($type) = type_of($2);
                my $name = $1;
                my ($text, $text_at) = string_constant('cpu.variable' . @variables, quoted($name) =~ s/^cpu\.device\.//r);
                push @variables, [ $text, "%cpu.variable { $text_at, " . ($opaque ? "ptr $name" : "i8* bitcast ($type* $name to i8*)") . ', i64 ' . ($line =~ /"cpu\.managed"/ ? 1 : 0) . ' }' ];
            }
            $line =~ s/, section "cpu\.(?:shared|managed)"//;
            next if $line =~ /^declare .*\@(?:__kernel_(?:index|rests|wait|waits|frame)|llvm\.assume)\(/;
            push @out, $line;
            next;
        }
        my @body;
        while (defined(my $next = shift @lines)) {
            last if $next eq '}';
            push @body, $next if $next !~ /^\s*(?:;|$)/;
        }
        my ($body, $elsewhere) = follow_pointers(\@body);
        name_indices($body);
        my ($called) = $line =~ /(@(?:"[^"]*"|[\w\$.]+))\(/;
        if (!$is_kernel{$called}) {
            refuse('a barrier, or an index, in a function that calls itself, or is of another file') if grep { /\@__kernel_(?:wait|index)\(|%cpu\.[gnbt][xyz]\b/ } @$body;
            push @out, $line, @$body, '}';
            next;
        }
        my $kernel = read_function($line, $body);
        $kernel->{elsewhere} = $elsewhere || grep { /call .*\@cpu\.device\./ } @$body;
        choose_reduction($kernel);
        push @kernels, $kernel;
    }
    my ($free) = sort { $b <=> $a } 0, map { /^!(\d+) = / ? $1 + 1 : () } @out;
    $some_wait = grep { $_->{waits} } @kernels;
    my (@codes, @text);
    for my $number (0 .. $#kernels) {
        my $kernel = $kernels[$number];
        $kernel->{letter} = letters($kernel);
        $kernel->{guard} = guard_of($kernel) if !$kernel->{waits};
        my (@more, $code);
        @more = describe($kernel, $number, \%shared);
        push @codes, pop @more;
        push @text, @more;
        make_coroutine($kernel) if $kernel->{waits};
        push @text, head_of($kernel, $kernel->{waits}), @{ $kernel->{body} }, '}';
        my ($of, $at, @metadata) = lines_of($kernel, \@out, $free + 4 * $number);
        push @text, first_function($kernel, $number);
        push @text, $kernel->{waits} ? thread_function($kernel, $number, $of, $at) : loop_function($kernel, $number, $free + 4 * $number + 2, $of, $at), @metadata;
    }
    exit 1 if %$errors;
    write_lines($to, @out, registration($id, \@codes, \@variables), @text, here_functions());
    return $some_wait;
}

# LLVM 14 to 19 end with an error if a coroutine has line numbers. Its pieces may have them: each gets a function of
# its own in the debug information, of which the kernel's lines are an inlined part.
sub lines_again {
    my @lines = @_;
    my (%is, %copy, $own, @more, @out);
    my $free = 0;
    for (@lines) {
        ($is{$1}, $free) = ($2, $1 + 1) if /^!(\d+) = (.*)/ && $1 >= $free;
    }
    my %pieces = map { /^define .*?(@\S+?)\.resume\(/ ? ($1 => 1, "$1.resume" => 1) : () } @lines;
    my $copied;
    $copied = sub { # the same location, in this piece
        my ($n) = @_;
        return $copy{$n} if $copy{$n};
        my ($text, $to) = ($is{$n}, $copy{$n} = $free++);
        $text =~ s/inlinedAt: !(\d+)/"inlinedAt: !" . $copied->($1)/e or $text =~ s/\)$/, inlinedAt: !$own)/;
        push @more, "!$to = $text";
        return $to;
    };
    for my $i (0 .. $#lines) {
        my $line = $lines[$i];
        # A loop's own location would still be the kernel's, and LLVM then drops all lines of the file.
        $line =~ s|, !(\d+)(?=[,}])|($is{$1} // '') =~ /^!DILocation/ ? '' : ", !$1"|ge if $line =~ /^!(\d+) = distinct !\{!\1,/;
        if ($line =~ /^define .*?(@[^\s(]+)\(/) {
            undef $own;
            %copy = ();
            my $end = $i;
            $end++ while $lines[$end] ne '}';
            my ($at) = grep { ($is{$_} // '') =~ /^!DILocation\((?!.*inlinedAt)/ } map { /!dbg !(\d+)/ } @lines[ $i + 1 .. $end ];
            if ($pieces{$1} && defined $at) {
                my ($scope) = $is{$at} =~ /scope: !(\d+)/;
                ($scope) = $is{$scope} =~ /scope: !(\d+)/ while $is{$scope} !~ /^distinct !DISubprogram/;
                my $function = $free++;
                $own = $free++;
                push @more, "!$function = $is{$scope}", "!$own = distinct !DILocation(line: 0, scope: !$function)";
                $line =~ s/ \{$/ !dbg !$function {/;
            }
        } elsif ($own) {
            $line =~ s/!dbg !(\d+)/"!dbg !" . $copied->($1)/e or $line =~ s/^(\s+(?:\S+ = )?(?:tail )?call .*)/$1, !dbg !$own/;
            undef $own if $line eq '}';
        }
        push @out, $line;
    }
    return (@out, @more);
}

# LLVM's lowest level, which cuts the coroutines, would inline at once what the highest does better.
sub device_inline_again {
    my ($file) = @_;
    my @lines = lines_again(read_lines($file));
    s/^(define internal (?:void|i1) @(?:"[^"]*"|[\w\$.]+)\(.*\) )/$1alwaysinline / for grep { /cpu\.g[xyz]\b/ } @lines;
    write_lines($file, @lines);
}

1;
