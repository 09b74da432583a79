import * as React from 'react';

import { DURATIONS } from '../choices';
import { Current } from '../current';
import { useAttempt, useCurrent, useDesk, useJobForm } from '../desk';
import { folderName } from '../text';
import { SubmitBody } from '../wire';
import { Action } from './Action';
import { FIRST_CHOICE, SlotFields, specOfChosen, TimeField, useChoice } from './SlotFields';
import { Name, Prose, Refused } from './Text';

/** Submit a batch job: the notebook one is at, or a command. */
export function JobForm(): React.JSX.Element {
  const desk = useDesk();
  const { api, jobForm, store, words } = desk;
  const current = useCurrent();
  const wanted = useJobForm();
  const { attempt, isBusy, refusal } = useAttempt();
  const [command, setCommand] = React.useState('');
  const [folder, setFolder] = React.useState(current === null ? '' : folderName(current.path));
  const [chosen, setChosen] = React.useState(FIRST_CHOICE);
  const [limitMs, setLimitMs] = React.useState<number | null>(null);
  const [isPreemptible, setPreemptible] = React.useState(false);
  const choice = useChoice(chosen);
  const isNotebook = wanted === 'notebook' && current !== null;
  if (choice === null) {
    return <p className="gpb-Empty">{words.noGpus}</p>;
  }
  const submit = (event: React.FormEvent): void => {
    event.preventDefault();
    const rest: SubmitBody = {
      spec: specOfChosen(choice, chosen),
      time_limit_ms: limitMs,
      preemptible: isPreemptible
    };
    attempt(async () => {
      if (isNotebook) {
        await desk.current.save();
      }
      await api.submit(
        isNotebook ? { notebook: current.path, ...rest } : { command, folder, ...rest }
      );
      jobForm.set('closed');
      await store.refresh('jobs');
    });
  };
  return (
    <form className="gpb-Form gpb-JobForm" aria-label={words.newJob} onSubmit={submit}>
      <What current={current} isNotebook={isNotebook} />
      {!isNotebook && (
        <>
          <label>
            <span>{words.command}</span>
            <input
              className="gpb-Input gpb-mod-code"
              required
              autoFocus
              spellCheck={false}
              placeholder="python train.py"
              title={words.commandHint}
              value={command}
              onChange={event => setCommand(event.target.value)}
            />
          </label>
          <label>
            <span>{words.folder}</span>
            <input
              className="gpb-Input"
              spellCheck={false}
              placeholder="/"
              value={folder}
              onChange={event => setFolder(event.target.value)}
            />
          </label>
        </>
      )}
      <SlotFields choice={choice} chosen={chosen} onChange={setChosen} />
      <TimeField
        label={words.atMost}
        unlimited={words.unlimited}
        choices={DURATIONS}
        value={limitMs}
        onChange={setLimitMs}
      />
      <label className="gpb-Form-check">
        <input
          type="checkbox"
          checked={isPreemptible}
          onChange={event => setPreemptible(event.target.checked)}
        />
        <span>{words.preemptible}</span>
      </label>
      <p className="gpb-Form-outlook">
        <Prose text={isNotebook ? words.notebookHint : words.commandHint} />
      </p>
      <div className="gpb-Actions">
        <button type="submit" className="gpb-Action gpb-mod-primary" disabled={isBusy}>
          {words.submit}
        </button>
        <Action label={words.close} onClick={() => jobForm.set('closed')} />
      </div>
      <Refused text={refusal} />
    </form>
  );
}

interface WhatProps {
  readonly current: Current | null;
  readonly isNotebook: boolean;
}

function What(props: WhatProps): React.JSX.Element {
  const { jobForm, words } = useDesk();
  const name = React.useId();
  return (
    <fieldset className="gpb-Form-what">
      <legend>{words.run}</legend>
      {props.current !== null && (
        <label className="gpb-Form-check">
          <input
            type="radio"
            name={name}
            checked={props.isNotebook}
            onChange={() => jobForm.set('notebook')}
          />
          <Name text={props.current.name} title={props.current.path} />
        </label>
      )}
      <label className="gpb-Form-check">
        <input
          type="radio"
          name={name}
          checked={!props.isNotebook}
          onChange={() => jobForm.set('command')}
        />
        <span>{words.aCommand}</span>
      </label>
    </fieldset>
  );
}
