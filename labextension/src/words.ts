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
  readonly giveBack: Readonly<Record<string, string>>;
  readonly keptFor: (time: string) => string;
  readonly endsIn: (time: string) => string;
  readonly command: string;
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
  readonly noneFree: (waiting: number) => string;
  readonly lastExpected: (time: string) => string;
  // --- line, pool, jobs
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
  readonly noJobs: string;
  // --- notices
  readonly goesBackAt: (name: string, time: string) => string;
  readonly gotGpu: (name: string) => string;
  readonly titleMark: string;
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
