import tseslint from 'typescript-eslint';

export default tseslint.config(...tseslint.configs.strictTypeChecked, {
  languageOptions: { parserOptions: { project: './tsconfig.json' } },
  rules: {
    '@typescript-eslint/no-confusing-void-expression': 'off',
    '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    // Text reaches the page as text nodes only.
    'no-restricted-properties': [
      'error',
      { property: 'innerHTML' },
      { property: 'outerHTML' },
      { property: 'insertAdjacentHTML' },
      { property: 'dangerouslySetInnerHTML' }
    ],
    'no-restricted-syntax': ['error', "JSXAttribute[name.name='dangerouslySetInnerHTML']"]
  }
});
