# Draws the CSV files of bandwidth, for make plot:
#   gnuplot -e "csv='bandwidth.csv'; svg='bandwidth.svg'" bandwidth.gnuplot
# Time and bus bandwidth against the size, one line for each operation in the file and each
# way (plain, graph, register) in which it was launched.
lines = system("awk -F, 'NR > 1 && !seen[$1 FS $2]++ { print $1 FS $2 }' '" . csv . "'")
name(line) = line[1:strstrt(line, ",") - 1]
mode(line) = line[strstrt(line, ",") + 1:*]
title(line) = name(line) . (mode(line) eq "plain" ? "" : " (" . mode(line) . ")")
# A column of one line; other lines' rows, and zeros, have no place on a log axis.
of(line, value) = strcol(1) . "," . strcol(2) eq line && value > 0 ? value : NaN

set terminal svg size 1360, 480 font "sans-serif,13" noenhanced background rgb "white"
set output svg
set datafile separator ","
set logscale xy
set grid
set format x "%.0s %cB"
set xlabel "size"
set style data linespoints
# Two plots of one size, and the legend of both beside the second.
set multiplot
set tmargin 3
set lmargin at screen 0.055
set rmargin at screen 0.37
set title "time (µs)"
unset key
plot for [line in lines] csv skip 1 using 4:(of(line, $5)) pointsize 0.4 title title(line)
set title "bus bandwidth (GB/s)"
set lmargin at screen 0.44
set rmargin at screen 0.755
set key at screen 0.765, 0.88 left top Left reverse
plot for [line in lines] csv skip 1 using 4:(of(line, $7)) pointsize 0.4 title title(line)
unset multiplot
