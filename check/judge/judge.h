/*
 * judge.h: what a program does with CUDA, NCCL and MPI, told as events; and what is wrong
 * with it.
 *
 * The judge knows calls and waits. It moves no data, and knows neither CUDA, MPI nor
 * time: all that it needs of the world is given to it (struct judge_outside). So it
 * stands before the stand-in and before the real libraries alike, and a test can play the
 * events of eight ranks to eight judges in one process.
 *
 * Every event lies between judge_enter, which takes the judge's lock and says which
 * thread acts, and judge_leave. No function blocks. What is wrong is said through
 * judge_outside.say.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "events/life.h"
#include "events/memory.h"
#include "events/ranks.h"
#include "events/streams.h"
#include "events/waits.h"

#endif
