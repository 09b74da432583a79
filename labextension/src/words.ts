/**
 * The panel's own few words. What happened, why and what to do are the broker's sentences, which come in both languages;
 * here are labels, states in one or two words, and what needs a countdown. A language that lacks one does not compile.
 */

import { english } from './english';
import { spanish } from './spanish';

export type Language = 'en' | 'es';

/** Anything that the broker says in words. */
export interface Spoken {
  readonly sentence: string;
  readonly sentence_es: string;
}

export interface Words {
  readonly language: Language;
  // --- sections and labels
  readonly gpu: string;
  readonly panel: string;
  readonly mine: string;
  readonly request: string;
  readonly queue: string;
  readonly pool: string;
  readonly jobs: string;
  readonly of: string;
  readonly load: string;
  readonly memory: string;
  readonly loading: string;
  // --- what to do
  readonly keep: string;
  readonly release: string;
  readonly park: string;
  readonly unpark: string;
  readonly why: string;
  readonly leave: string;
  readonly cancel: string;
  readonly openPanel: string;
  readonly requestGpu: string;
  readonly allowNotifications: string;
  readonly allow: string;
  readonly elsewhere: string;
  readonly keepHint: (left: number | null) => string;
  readonly noKeepsLeft: string;
  readonly releaseHint: string;
  readonly parkHint: string;
  readonly actionsOf: (name: string) => string;
  // --- how a kernel stands, for chip and status bar
  readonly noBroker: string;
  readonly noGpu: string;
  readonly notLent: string;
  readonly returnsIn: (countdown: string) => string;
  readonly inQueue: (place: number | null, expected: string | null) => string;
  readonly arriving: string;
  readonly leaving: string;
  readonly parked: string;
  readonly verdicts: Readonly<Record<string, string>>;
  readonly unknownState: string;
  // --- leases
  readonly nothingHeld: string;
  readonly showMore: (count: number) => string;
  readonly giveBack: Readonly<Record<string, string>>;
  readonly keptFor: (time: string) => string;
  readonly endsIn: (time: string) => string;
  readonly command: string;
  readonly nextCellReturns: string;
  readonly nextCellWaits: string;
  // --- asking
  readonly forNotebook: string;
  readonly noNotebook: string;
  readonly noKernel: string;
  readonly holdsAlready: string;
  readonly what: string;
  readonly count: string;
  readonly until: string;
  readonly untilReleased: string;
  readonly leastMemory: string;
  readonly byMemory: string;
  readonly anyGpu: string;
  readonly freeOf: (free: number, all: number) => string;
  readonly freeNow: (free: number, all: number) => string;
  readonly noneFree: (place: number) => string;
  readonly turnExpected: (time: string) => string;
  readonly turnUnknown: string;
  // --- line, pool
  readonly emptyQueue: string;
  readonly myPlace: (place: number, all: number) => string;
  readonly expected: (time: string) => string;
  readonly expectedUnknown: string;
  readonly waited: (time: string) => string;
  readonly othersWait: (count: number) => string;
  readonly noGpus: string;
  readonly simulated: string;
  readonly slotStates: Readonly<Record<SlotLook, string>>;
  readonly gpuSummary: (free: number, all: number, used: string) => string;
  // --- batch jobs
  readonly noJobs: string;
  readonly newJob: string;
  readonly runAsJob: string;
  readonly run: string;
  readonly aCommand: string;
  readonly commandHint: string;
  readonly notebookHint: string;
  readonly folder: string;
  readonly atMost: string;
  readonly unlimited: string;
  readonly preemptible: string;
  readonly submit: string;
  readonly close: string;
  readonly actionsOfJob: (number: number) => string;
  readonly stopQuestion: (name: string) => string;
  readonly stopMeans: string;
  readonly stop: string;
  readonly letItRun: string;
  readonly takeOutQuestion: (name: string) => string;
  readonly takeOutMeans: string;
  readonly takeOut: string;
  readonly letItWait: string;
  readonly output: string;
  readonly outputOf: (name: string) => string;
  readonly errorOutput: string;
  readonly loadingLog: string;
  readonly noOutput: string;
  readonly logIsCut: string;
  // --- notices
  readonly goesBackAt: (name: string, time: string) => string;
  readonly gotGpu: (name: string) => string;
  readonly titleMark: string;
  readonly titleArrived: string;
}

export type SlotLook = 'free' | 'mine' | 'taken' | 'clearing' | 'unusable';

/** The language of JupyterLab, where we speak it. */
export function wordsFor(languageCode: string): Words {
  return languageCode.toLowerCase().startsWith('es') ? spanish : english;
}

export function sentenceOf(spoken: Spoken, words: Words): string {
  return words.language === 'es' ? spoken.sentence_es : spoken.sentence;
}

export function detailOf(problem: { detail: string; detail_es: string }, words: Words): string {
  return words.language === 'es' ? problem.detail_es : problem.detail;
}
